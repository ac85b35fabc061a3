drop table sqlx_t;
