//! The command line, as a user meets it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

const GOOD: &str = "\
[databases]
app = host=127.0.0.1 port=5432 password=hidden-secret

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = PORT
unix_socket_dir =
pool_mode = transaction
auth_type = trust
";

fn holdfast(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdfast")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// A file in a folder of its own.
fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn check(text: &str, more: &[&str]) -> Output {
    let (_folder, path) = file("pgbouncer.ini", text);
    let mut arguments = vec!["pooler", path.to_str().unwrap(), "--check"];
    arguments.extend(more);
    holdfast(&arguments)
}

#[test]
fn the_version_is_told() {
    let told = holdfast(&["--version"]);
    assert_eq!((code(&told), stdout(&told).trim()), (0, concat!("holdfast ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn help_teaches_with_examples() {
    let help = stdout(&holdfast(&["--help"]));
    assert!(help.contains("holdfast pooler pgbouncer.ini --check") && help.contains("Exit codes"), "{help}");
    let help = stdout(&holdfast(&["pooler", "--help"]));
    assert!(help.contains("pool_mode = transaction") && help.contains("/healthz/database"), "{help}");
}

#[test]
fn a_wrong_command_line_exits_with_64_and_names_the_cure() {
    let wrong = holdfast(&["poler", "x.ini"]);
    assert_eq!(code(&wrong), 64);
    assert!(stderr(&wrong).contains("pooler"), "{}", stderr(&wrong));
    assert_eq!(code(&holdfast(&["pooler"])), 64);
    assert_eq!(code(&holdfast(&[])), 64);
}

#[test]
fn the_example_of_the_help_can_run() {
    let help = stdout(&holdfast(&["pooler", "--help"]));
    let example = help.split("The least that runs:").nth(1).unwrap().split("With `").next().unwrap();
    let (folder, path) = file("pgbouncer.ini", example);
    fs::write(folder.path().join("userlist.txt"), "\"app\" \"secret\"\n").unwrap();
    let checked = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .args(["pooler", path.to_str().unwrap(), "--check"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(code(&checked), 0, "{}", stdout(&checked));
}

#[test]
fn a_good_file_passes_the_check_while_its_port_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let checked = check(&GOOD.replace("PORT", &port), &[]);
    let text = stdout(&checked);
    assert_eq!(code(&checked), 0, "{text}");
    assert!(text.contains(&format!("can run: listens on 127.0.0.1:{port}; 1 database;")), "{text}");
    assert!(!text.contains("hidden-secret"), "{text}");
}

#[test]
fn a_note_tells_what_is_worth_knowing_about_a_good_file() {
    let checked = check(&GOOD.replace("PORT", "6432"), &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&stdout(&checked)).unwrap();
    assert_eq!(value["ok"], true);
    let findings = value["findings"].as_array().unwrap();
    let about_waiting =
        findings.iter().any(|finding| finding["message"].as_str().unwrap().contains("query_wait_timeout"));
    assert!(about_waiting, "without client_patience the default of 120 s is worth a note: {value}");
    assert!(findings.iter().all(|finding| finding["severity"] != "error"));
}

#[test]
fn errors_show_the_line_a_caret_and_the_nearest_name() {
    let checked = check(&GOOD.replace("PORT", "6432").replace("auth_type", "auth_tipe"), &[]);
    let text = stdout(&checked);
    assert_eq!(code(&checked), 1, "{text}");
    assert!(text.contains("auth_tipe = trust") && text.contains("^^^^^^^^^"), "{text}");
    assert!(text.contains("auth_type") && text.contains("pgbouncer.ini:9"), "{text}");
    assert!(text.contains("cannot run: 1 error"), "{text}");
}

#[test]
fn errors_as_json_have_place_and_code() {
    let checked = check(&GOOD.replace("PORT", "99999"), &["--json"]);
    assert_eq!(code(&checked), 1);
    let value: serde_json::Value = serde_json::from_str(&stdout(&checked)).unwrap();
    assert_eq!(value["ok"], false);
    let finding = &value["findings"][0];
    assert_eq!((&finding["severity"], &finding["line"]), (&"error".into(), &6.into()), "{value}");
    assert!(
        finding["code"].is_string() && finding["file"].as_str().unwrap().ends_with("pgbouncer.ini"),
        "{value}"
    );
}

#[test]
fn a_wait_beyond_the_callers_patience_is_refused_with_the_reason() {
    let text = GOOD.replace("PORT", "6432") + "client_patience = 5\nquery_wait_timeout = 10\n";
    let checked = check(&text, &[]);
    assert_eq!(code(&checked), 1);
    assert!(stdout(&checked).contains("client_patience"), "{}", stdout(&checked));
}

#[test]
fn a_setting_that_is_not_built_is_refused_by_name() {
    let checked = check(&(GOOD.replace("PORT", "6432") + "peer_id = 5\n"), &[]);
    assert_eq!(code(&checked), 1);
    assert!(stdout(&checked).contains("peer_id"), "{}", stdout(&checked));
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let checked = holdfast(&["pooler", "/nonexistent/pgbouncer.ini", "--check"]);
    assert_eq!(code(&checked), 1);
    assert!(stdout(&checked).contains("/nonexistent/pgbouncer.ini"), "{}", stdout(&checked));
}

#[test]
fn a_file_with_errors_does_not_run_and_complains_on_standard_error() {
    let (_folder, path) = file("pgbouncer.ini", &GOOD.replace("PORT", "no"));
    let ran = holdfast(&["pooler", path.to_str().unwrap()]);
    assert_eq!((code(&ran), stdout(&ran).as_str()), (1, ""));
    assert!(stderr(&ran).contains("listen_port") && stderr(&ran).contains("cannot run"), "{}", stderr(&ran));
}

#[test]
fn a_port_that_is_taken_is_an_error_with_a_cure() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (_folder, path) = file("pgbouncer.ini", &GOOD.replace("PORT", &port));
    let ran = holdfast(&["pooler", path.to_str().unwrap()]);
    assert_eq!(code(&ran), 1);
    assert!(stderr(&ran).contains(&format!("127.0.0.1:{port}")), "{}", stderr(&ran));
}

#[test]
fn a_log_file_that_cannot_be_opened_is_an_error_with_a_cure() {
    let text = GOOD.replace("PORT", "0") + "logfile = /nonexistent/pooler.log\n";
    let (_folder, path) = file("pgbouncer.ini", &text);
    let ran = holdfast(&["pooler", path.to_str().unwrap()]);
    assert_eq!(code(&ran), 1);
    assert!(stderr(&ran).contains("/nonexistent"), "{}", stderr(&ran));
}

#[test]
fn benches_refuse_a_pgbouncer_that_is_not_there() {
    let ran = holdfast(&["bench", "cost", "--pgbouncer", "/nonexistent/pgbouncer"]);
    assert_eq!(code(&ran), 1);
    assert!(stderr(&ran).contains("/nonexistent/pgbouncer"), "{}", stderr(&ran));
}

#[test]
fn a_role_says_once_what_is_wrong_with_its_file_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("role.toml");
    let name = file.to_str().unwrap();
    for role in ["api", "relay", "worker"] {
        let missing = holdfast(&[role, name]);
        let said = stderr(&missing);
        assert_eq!((code(&missing), said.matches("No such file").count()), (1, 1), "{said}");
    }
    fs::write(&file, "network = 7\n").unwrap();
    for role in ["api", "relay", "worker"] {
        let wrong = holdfast(&[role, name]);
        let said = stderr(&wrong);
        assert_eq!((code(&wrong), said.lines().count()), (1, 1), "{said}");
        assert!(said.contains(name) && said.contains("line 1, column 11"), "{said}");
    }
}
