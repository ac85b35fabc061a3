use super::*;
use crate::pooler::parse_ini;

fn config(pool_size: u32, port: u16, database: &str) -> PoolerConfig {
    let text = format!(
        "[databases]\n{database}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n\
         default_pool_size = {pool_size}\n"
    );
    parse_ini(&text).unwrap().config
}

fn differing(
    file: Option<&PoolerConfig>,
    loaded: &PoolerConfig,
    started: &PoolerConfig,
) -> Vec<(String, [String; 3], TruthState)> {
    truth(file, loaded, started)
        .into_iter()
        .filter(|row| row.state != TruthState::Same)
        .map(|row| (row.key, [row.file, row.loaded, row.live], row.state))
        .collect()
}

const DATABASE: &str = "app = host=h user=u password=sesame1";

#[test]
fn a_changed_file_and_a_pending_restart_are_told_apart() {
    let started = config(5, 6432, DATABASE);
    let loaded = config(6, 6433, DATABASE);
    let file = config(7, 6434, DATABASE);
    assert_eq!(differing(Some(&started), &started, &started), []);
    let row = |key: &str, values: [&str; 3], state| (key.to_owned(), values.map(str::to_owned), state);
    // What a reload has brought is live, but for what takes a restart.
    assert_eq!(
        differing(Some(&loaded), &loaded, &started),
        [row("listen_port", ["6433", "6433", "6432"], TruthState::PendingRestart)]
    );
    assert_eq!(
        differing(Some(&file), &loaded, &started),
        [
            row("default_pool_size", ["7", "6", "6"], TruthState::NotReloaded),
            row("listen_port", ["6434", "6433", "6432"], TruthState::NotReloaded),
        ]
    );
    // A file that cannot be read says nothing.
    assert_eq!(differing(None, &started, &started), []);
}

#[test]
fn databases_that_come_go_or_change_are_seen_and_passwords_are_not_shown() {
    let loaded = config(5, 6432, DATABASE);
    let keys = |database: &str| -> Vec<String> {
        let file = config(5, 6432, database);
        differing(Some(&file), &loaded, &loaded).into_iter().map(|(key, ..)| key).collect()
    };
    assert_eq!(keys("app = host=h user=u password=sesame2"), ["databases.app.password"]);
    assert_eq!(keys("app = host=h user=u password=sesame1 pool_size=3"), ["databases.app.pool_size"]);
    let gone: Vec<_> = keys("other = host=h");
    assert!(gone.contains(&"databases.app.host".to_owned()), "{gone:?}");
    assert!(gone.contains(&"databases.other.host".to_owned()), "{gone:?}");
    let rows = truth(Some(&config(5, 6432, "app = host=h user=u password=sesame2")), &loaded, &loaded);
    assert!(!format!("{rows:?}").contains("sesame2") && !format!("{rows:?}").contains("sesame1"), "{rows:?}");
}

#[test]
fn the_text_to_be_hashed_holds_each_value_and_no_path_of_the_file() {
    let rows = [("conffile", "/etc/a.ini"), ("pool_mode", "a\nb")];
    let text = canonical(rows.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(text, "pool_mode = \"a\\nb\"\n");
}
