//! `holdfast db restart`, on a private PostgreSQL behind real poolers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cluster::Account;
use drill::peer::{Holdfast, Peer, Pgbouncer, PoolerSetup};
use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres, StopMode, USER};
use drill::wire::{Connection, block_on};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A server that was started as an operator starts one, so that it can be started anew by somebody else.
struct Server {
    // Its folder, port and programs.
    home: PrivatePostgres,
    data: PathBuf,
    account: Account,
}

impl Server {
    fn start() -> Self {
        let mut home = PrivatePostgres::start(PostgresOptions::default()).unwrap();
        home.stop(StopMode::Fast).unwrap();
        let data = home.socket_dir().join("data");
        fs::write(data.join("postgresql.conf"), "max_connections = 60\nfsync = off\nshared_buffers = 16MB\n")
            .unwrap();
        let account = Account::unprivileged().unwrap();
        account.give(&data.join("postgresql.conf")).unwrap();
        let server = Self { home, data, account };
        let log = server.data.join("server.log");
        let own = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1",
            server.home.port(),
            server.home.socket_dir().display()
        );
        server.pg_ctl(&["-w", "-l", log.to_str().unwrap(), "-o", &own, "start"]);
        server
    }

    fn pg_ctl(&self, arguments: &[&str]) {
        let mut command = self.account.command(&self.home.binaries().program("pg_ctl"));
        let status = command.arg("-s").arg("-D").arg(&self.data).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    fn value(&self, sql: &str) -> String {
        self.home.admin(sql).unwrap()[0][0].clone().unwrap()
    }

    fn started_at(&self) -> String {
        self.value("select pg_postmaster_start_time()")
    }

    fn settings(&self) -> String {
        fs::read_to_string(self.data.join("postgresql.conf")).unwrap()
    }

    fn new_settings(&self, more: &str) -> PathBuf {
        let path = self.home.socket_dir().join("new.conf");
        fs::write(&path, self.settings() + more).unwrap();
        path
    }

    fn restart(&self, arguments: &[&str], poolers: &[&Peer]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(["db", "restart", "--json", "--data"]).arg(&self.data).args(arguments);
        for pooler in poolers {
            command.arg("--pooler").arg(format!("postgresql://postgres@{}/pgbouncer", pooler.address()));
        }
        command.output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut command = self.account.command(&self.home.binaries().program("pg_ctl"));
        // It may be down already.
        let _ = command.args(["-s", "-m", "immediate", "-D"]).arg(&self.data).arg("stop").status();
    }
}

fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| serde_json::Value::String(both(output)))
}

fn both(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn argument(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn callers_of_a_pooler_see_a_pause_and_the_new_setting_is_in_force() {
    let server = Server::start();
    let setup = PoolerSetup::new(server.home.tcp_address());
    let mut poolers =
        vec![Holdfast::new(Path::new(env!("CARGO_BIN_EXE_holdfast"))).unwrap().start(&setup).unwrap()];
    // The one that has had PAUSE for years, where it is installed.
    poolers.extend(Pgbouncer::find(None).ok().map(|pgbouncer| pgbouncer.start(&setup).unwrap()));
    let new = server.new_settings("max_connections = 70\n");
    let before = server.started_at();
    let (output, answers) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            block_on(async {
                let connect = async |pooler: &Peer| {
                    Connection::connect(&pooler.connect_options(USER, DATABASE)).await.unwrap()
                };
                let mut callers = Vec::new();
                for pooler in &poolers {
                    callers.push((pooler, connect(pooler).await, 0));
                }
                let mut answers = 0;
                for _ in 0..30 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    for (pooler, caller, cut) in &mut callers {
                        match caller.query("select 1").await {
                            Ok(reply) => {
                                assert!(reply.errors.is_empty(), "{:?}", reply.errors);
                                answers += 1;
                            }
                            // Ours has no PAUSE yet: whoever asks as the server ends is cut, once, and all others wait.
                            Err(error) => {
                                *cut += 1;
                                assert!(
                                    pooler.name() == "holdfast" && *cut <= 1,
                                    "{}: {error}",
                                    pooler.name()
                                );
                                *caller = connect(pooler).await;
                            }
                        }
                    }
                }
                answers
            })
            .unwrap()
        });
        let output = server.restart(&["--new", argument(&new)], &poolers.iter().collect::<Vec<_>>());
        (output, asked.join().unwrap())
    });
    let done = json(&output);
    assert_eq!((output.status.code(), &done["outcome"]), (Some(0), &"restarted".into()), "{}", both(&output));
    assert_eq!(
        done["changes"],
        serde_json::json!([{ "name": "max_connections", "now": "60", "then": "70" }])
    );
    assert_eq!(
        (&done["not_in_force"], &done["not_resumed"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    assert_eq!(server.value("show max_connections"), "70");
    assert_ne!(server.started_at(), before);
    assert!(answers + 1 >= 30 * poolers.len(), "{answers}");
}

#[test]
fn a_broken_setting_is_refused_before_anything_is_touched() {
    let server = Server::start();
    let (before, settings) = (server.started_at(), server.settings());
    let new = server.new_settings("shared_buffers = 'lots'\n");
    let output = server.restart(&["--new", argument(&new)], &[]);
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    let said = both(&output);
    assert!(said.contains("nothing was touched") && said.contains("shared_buffers"), "{said}");
    let unnamed = server.restart(&[], &[]);
    assert!(both(&unnamed).contains("no former settings"), "{}", both(&unnamed));
    assert_eq!((server.started_at(), server.settings()), (before, settings));
}

#[test]
fn a_server_that_does_not_come_up_gets_its_former_settings_back() {
    let server = Server::start();
    let settings = server.settings();
    let before = server.started_at();
    // The check finds nothing wrong with it: only a start does.
    let new = server.new_settings("shared_preload_libraries = 'no_such_library'\n");
    let planned = server.restart(&["--plan", "--new", argument(&new)], &[]);
    assert_eq!(planned.status.code(), Some(0), "{}", both(&planned));
    assert_eq!(json(&planned)["changes"][0]["name"], "shared_preload_libraries");
    assert_eq!(
        (server.started_at(), server.settings()),
        (before.clone(), settings.clone()),
        "a plan does nothing"
    );

    let output = server.restart(&["--new", argument(&new), "--limit-s", "20"], &[]);
    assert_eq!(
        (output.status.code(), &json(&output)["outcome"]),
        (Some(2), &"rolled_back".into()),
        "{}",
        both(&output)
    );
    assert_eq!(server.settings(), settings);
    assert_ne!(server.started_at(), before);
    assert_eq!(server.value("show shared_preload_libraries"), "");
}

#[test]
fn a_pool_that_does_not_come_to_rest_ends_it_and_goes_on() {
    // Our own pooler lets callers wait in line; the peer is where PAUSE can take long.
    let Ok(pgbouncer) = Pgbouncer::find(None) else { return };
    let server = Server::start();
    let before = server.started_at();
    let pooler = pgbouncer.start(&PoolerSetup::new(server.home.tcp_address())).unwrap();
    let new = server.new_settings("max_connections = 70\n");
    let output = block_on(async {
        let mut holder = Connection::connect(&pooler.connect_options(USER, DATABASE)).await.unwrap();
        holder.query("begin").await.unwrap().into_result().unwrap();
        let output = server.restart(&["--new", argument(&new), "--pause-limit-s", "1"], &[&pooler]);
        holder.query("commit").await.unwrap().into_result().unwrap();
        holder.query("select 1").await.unwrap().into_result().unwrap();
        output
    })
    .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(both(&output).contains("did not come to rest"), "{}", both(&output));
    assert_eq!(server.started_at(), before);
}
