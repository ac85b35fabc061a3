//! Real drivers in transaction mode, without named prepared statements.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use drill::postgres::DATABASE;

use crate::psql::{Way, psql};
use crate::support::{House, not_run, number};

const PSYCOPG: &str = "psycopg[binary]==3.2.3";

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_runs_a_script_with_copy_errors_and_transactions() {
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    let script = "begin; create table t (x int, y text); insert into t select g, 'r' || g from generate_series(1, 1000) g; commit; \
                  select count(*) as rows, max(y) as last from t";
    let seen = psql(&house, Way::Tcp, "bench", DATABASE, None, script);
    assert!(
        seen.worked && seen.stdout.ends_with("rows|last\n1000|r999\n(1 row)\n"),
        "{}{}",
        seen.stdout,
        seen.stderr
    );
    let seen = psql(&house, Way::Tcp, "bench", DATABASE, None, "copy t to stdout");
    assert_eq!(seen.stdout.lines().count(), 1000);
    let seen = psql(&house, Way::Tcp, "bench", DATABASE, None, "select 1/0");
    assert!(!seen.worked && seen.stderr.contains("division by zero"), "{}", seen.stderr);
}

pub(crate) fn pgbench(house: &House, arguments: &[&str]) -> Output {
    Command::new(house.postgres.binaries().program("pgbench"))
        .env_clear()
        .env("LC_ALL", "C")
        .args(["-h", "127.0.0.1", "-p", &house.pooler.port().to_string(), "-U", "bench"])
        .args(arguments)
        .arg(DATABASE)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbench_runs_simple_and_extended_with_more_clients_than_servers() {
    let house = House::start(|setup| setup.setting("default_pool_size", "4"));
    let filled = pgbench(&house, &["-i", "-s", "1", "-q"]);
    assert!(filled.status.success(), "{}", text(&filled));
    for protocol in ["simple", "extended"] {
        let run = pgbench(&house, &["-n", "-M", protocol, "-c", "12", "-t", "50"]);
        let told = text(&run);
        assert!(
            run.status.success() && told.contains("number of failed transactions: 0"),
            "{protocol}: {told}"
        );
        assert!(told.contains("600/600"), "{protocol}: {told}");
    }
    let pool = house.pool().await;
    assert!(number(&pool, "sv_idle") <= 4 && pool["cl_active"] == "0", "{pool:?}");
}

const SCRIPT: &str = "
import psycopg, sys, threading
url = sys.argv[1]
def work(number):
    with psycopg.connect(url, prepare_threshold=None) as connection:
        for turn in range(20):
            with connection.transaction():
                row = connection.execute('select %s::int * 2, %s::text', (number, 'text ' + str(turn))).fetchone()
                assert row == (2 * number, 'text ' + str(turn)), row
        with connection.transaction():
            with connection.pipeline():
                results = [connection.execute('select %s::int', (step,)) for step in range(50)]
            assert [result.fetchone()[0] for result in results] == list(range(50))
        try:
            with connection.transaction():
                connection.execute('select 1/0')
            raise SystemExit('no error')
        except psycopg.errors.DivisionByZero:
            pass
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute('create temp table c (x int) on commit drop')
            with cursor.copy('copy c from stdin') as copy:
                for step in range(1000):
                    copy.write_row((step,))
            cursor.execute('select count(*) from c')
            assert cursor.fetchone()[0] == 1000
failures = []
def guarded(number):
    try:
        work(number)
    except BaseException as error:
        failures.append(repr(error))
threads = [threading.Thread(target=guarded, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failures, failures
print('all is well')
";

/// A Python with psycopg, made once under `target`; the reason where that cannot be done.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("psycopg");
    let python = folder.join("bin/python");
    let run = |command: &mut Command| {
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() { Ok(()) } else { Err(text(&output)) }
    };
    if run(Command::new(&python).args(["-c", "import psycopg"])).is_ok() {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PSYCOPG];
    run(Command::new(&python).args(pip))?;
    Ok(python)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psycopg_runs_transactions_pipelines_errors_and_copy() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => {
            return not_run(&format!(
                "no psycopg here: {}",
                reason.trim().lines().last().unwrap_or_default()
            ));
        }
    };
    let house = House::start(|setup| setup.setting("default_pool_size", "3"));
    let url = format!("postgresql://bench@127.0.0.1:{}/{DATABASE}", house.pooler.port());
    let run = Command::new(python).args(["-c", SCRIPT, &url]).output().unwrap();
    assert!(run.status.success() && text(&run).contains("all is well"), "{}", text(&run));
}
