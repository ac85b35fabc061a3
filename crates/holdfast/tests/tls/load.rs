//! Much data, and many clients.

use std::process::{Command, Stdio};

use crate::certificates::Files;
use crate::clients::psql;
use crate::support::House;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_of_megabytes_passes_both_ways_with_tls_on_both_sides() {
    let files = Files::new();
    let certificate = files.authority.certify("127.0.0.1");
    let options = drill::postgres::PostgresOptions::default().tls(&certificate.pem, &certificate.key);
    let house = House::build(&crate::support::holdfast(), options, false, |setup| {
        files
            .offer(setup, "require")
            .setting("server_tls_sslmode", "verify-full")
            .setting("server_tls_ca_file", &files.path("ca.pem"))
    });
    let rows: String = (0..200_000).map(|row| format!("{row}\tsome text of row {row}\n")).collect();
    let port = house.pooler.port();
    let conninfo = format!("host=127.0.0.1 port={port} user=bench dbname=bench sslmode=require");
    let mut command = Command::new(house.postgres.binaries().program("psql"));
    command.env_clear().env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped());
    command.args(["-X", "-w", "-q", "-v", "ON_ERROR_STOP=1", &conninfo]);
    command.args(["-c", "create table t (x int, y text)", "-c", "copy t from stdin"]);
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), rows.as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let count = psql(&house, "sslmode=require", "select count(*), sum(x) from t").unwrap();
    assert_eq!(count, "200000|19999900000");
    let out = psql(&house, "sslmode=require", "copy (select * from t order by x) to stdout").unwrap();
    assert!(out == rows.trim(), "what came back differs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbench_runs_over_tls_standing_and_reconnecting() {
    let files = Files::new();
    let house = House::start(|setup| files.offer(setup, "require").setting("default_pool_size", "4"));
    psql(&house, "sslmode=require", "create table t (x int); insert into t select generate_series(1, 100)")
        .unwrap();
    for reconnect in [&[][..], &["-C"]] {
        let mut command = Command::new(house.postgres.binaries().program("pgbench"));
        command.env_clear().env("LC_ALL", "C").env("PGSSLMODE", "require").stdin(Stdio::piped());
        command.args(["-h", "127.0.0.1", "-p", &house.pooler.port().to_string(), "-U", "bench", "-n"]);
        command.args(["-f", "/dev/stdin", "-c", "8", "-t", "20"]).args(reconnect).arg("bench");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"select count(*) from t;\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let told =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("160/160"), "{reconnect:?}: {told}");
    }
}
