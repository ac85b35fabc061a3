\pset pager off
\set VERBOSITY verbose
\set SHOW_CONTEXT never
\d
\d library.*
\d+ library.shelf
\d+ library.book
\dt *.*shelf*
\dtS pg_class
\di library.*
\dv library.*
\dm library.*
\ds library.*
\df library.*
\df+ library.twice
\sf library.note
\dT library.*
\dD library.*
\dn
\du
\l
\db
\dx
\dp library.*
\dPt
\lo_list
\encoding
\copy library.shelf (id, label, tags) to :file csv header
create table meta_copy (id int, label text, tags text[]);
\copy meta_copy from :file csv header
select id, label from meta_copy order by id;
\copy meta_copy from program 'echo no number' csv
copy (select label, tags from meta_copy order by id limit 5) to stdout;
copy meta_copy from stdin;
1	Köln	{a,NULL}
2	\N	\N
\.
select count(*) from meta_copy;
select 1 as "first", 'x' as "second" \gdesc
select 41 + 1 as answer \gset
\echo :answer
select format('select %s as made', g) from generate_series(1, 5) g \gexec
select 1 as n, 'a' as w \gx
\crosstabview
select g % 2 as row, g as col, g * g as value from generate_series(1, 4) g \crosstabview
\set FETCH_COUNT 7
select g, repeat('z', 30) from generate_series(1, 100) g;
select 1/(50 - g) from generate_series(1, 100) g;
\set FETCH_COUNT 0
select * from nowhere;
\errverbose
\set AUTOCOMMIT off
insert into meta_copy values (7, 'in a transaction');
rollback;
\set AUTOCOMMIT on
\set ON_ERROR_ROLLBACK on
begin;
insert into meta_copy values (8, 'kept');
select 1/0;
insert into meta_copy values (9, 'kept too');
commit;
select * from meta_copy where id in (7, 8, 9);
\set ON_ERROR_ROLLBACK off
begin \; select 1 \; select 2 \; commit;
select 'every one of 60: ' || g || ' ' from generate_series(1, 60) g \g (format=unaligned tuples_only=on)
\nosuchcommand
\if :{?answer}
  \echo yes
\else
  \echo no
\endif
\c -
select current_user, current_database();
drop table meta_copy;
