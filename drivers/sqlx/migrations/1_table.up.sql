create table sqlx_t (id int primary key, word text, amount float8);
