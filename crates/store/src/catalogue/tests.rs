use std::collections::{BTreeMap, BTreeSet};

use drill::postgres::PrivatePostgres;

use super::grants::privileges;
use super::*;
use crate::migrate::{Passwords, migrate, tests::direct};

async fn database() -> PrivatePostgres {
    let postgres = PrivatePostgres::start_default().unwrap();
    let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
    migrate(&direct(&postgres), Some(&passwords)).await.unwrap();
    postgres
}

fn column(postgres: &PrivatePostgres, sql: &str) -> BTreeSet<String> {
    postgres.admin(sql).unwrap().into_iter().map(|mut row| row.remove(0).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_table_is_declared_and_each_declaration_is_a_table() {
    let postgres = database().await;
    let real = column(&postgres, "select tablename from pg_tables where schemaname = 'public'");
    let declared: BTreeSet<String> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    assert_eq!(declared.len(), TABLES.len(), "a table is declared twice");
    assert_eq!(real, declared);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_swept_has_an_index_on_the_moment_that_it_is_swept_by() {
    let postgres = database().await;
    for table in TABLES {
        let Life::Sweep { column: moment, .. } = table.life else { continue };
        let sql = format!(
            "select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
             where i.indrelid = '{}'::regclass",
            table.name
        );
        assert!(
            column(&postgres, &sql).contains(moment),
            "{} has no index that begins with {moment}",
            table.name
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grants_of_the_database_are_those_declared_and_no_more() {
    let postgres = database().await;
    // Whatever someone has granted by hand is gone with the next migration.
    postgres.admin("grant all on contract_outcome, grant_slice to holdfast_api, public").unwrap();
    migrate(&direct(&postgres), None).await.unwrap();
    let sql = "select table_name, grantee, privilege_type from information_schema.role_table_grants
        where table_schema = 'public' and (grantee like 'holdfast%' or grantee = 'PUBLIC')";
    let mut real: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for row in postgres.admin(sql).unwrap() {
        let [table, grantee, privilege] = row.try_into().unwrap();
        let key = (table.unwrap(), grantee.unwrap());
        real.entry(key).or_default().insert(privilege.unwrap());
    }
    let mut declared = BTreeMap::new();
    for table in TABLES {
        for role in Writer::AT_RUN_TIME {
            let privileges: BTreeSet<String> =
                privileges(table, role).into_iter().map(str::to_owned).collect();
            if !privileges.is_empty() {
                declared.insert((table.name.to_owned(), role.database_role().to_owned()), privileges);
            }
        }
    }
    assert_eq!(real, declared);
}

#[test]
fn a_table_has_one_role_that_inserts_and_updates() {
    for table in TABLES {
        let writers = Writer::AT_RUN_TIME.into_iter().filter(|role| {
            let privileges = privileges(table, *role);
            privileges.contains(&"INSERT") || privileges.contains(&"UPDATE")
        });
        assert_eq!(writers.count(), usize::from(table.writer != Writer::Migration), "{}", table.name);
    }
}
