drop table sqlx_c;
