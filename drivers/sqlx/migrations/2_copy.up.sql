create table sqlx_c (id int, word text);
create index sqlx_c_id on sqlx_c (id);
