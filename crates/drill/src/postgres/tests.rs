use super::*;

fn say(server: &PrivatePostgres, sql: &str) -> String {
    server.admin(sql).unwrap()[0][0].clone().unwrap()
}

#[test]
fn a_server_answers_on_its_socket_and_port_and_is_gone_when_dropped() {
    let server = PrivatePostgres::start(PostgresOptions::default().max_connections(17)).unwrap();
    assert_eq!(say(&server, "show max_connections"), "17");
    let options = wire::ConnectOptions::new(server.tcp_address().into(), USER, DATABASE);
    let reply = wire::block_on(async {
        let mut connection = wire::Connection::connect(&options).await.unwrap();
        connection.query("select current_user, current_database()").await.unwrap()
    })
    .unwrap();
    assert_eq!(reply.rows, [[Some("bench".to_owned()), Some("bench".to_owned())]]);

    let (pids, folder) = (server.pids().unwrap(), server.socket_dir().to_owned());
    assert!(pids.len() > 3);
    drop(server);
    assert!(!folder.exists());
    for pid in pids {
        assert!(clock::wait_for(STOP_LIMIT, || process::state(pid).is_none_or(|state| state == 'Z')));
    }
}

#[test]
fn a_paused_server_is_silent_and_answers_again_when_resumed() {
    let mut server = PrivatePostgres::start_default().unwrap();
    let options = wire::ConnectOptions::new(server.socket_address(), USER, DATABASE);
    let quiet = Duration::from_millis(200);
    wire::block_on(async {
        let mut connection = wire::Connection::connect(&options).await.unwrap();
        server.pause().unwrap();
        assert!(server.pids().unwrap().iter().all(|pid| process::state(*pid) == Some('T')));
        connection.send(&wire::frame::query("select 1")).await.unwrap();
        assert!(tokio::time::timeout(quiet, connection.read_message()).await.is_err());
        server.resume().unwrap();
        let reply = tokio::time::timeout(ADMIN_LIMIT, connection.read_reply()).await.unwrap().unwrap();
        assert_eq!(reply.rows, [[Some("1".to_owned())]]);
    })
    .unwrap();
}

#[test]
fn a_paused_server_is_gone_when_dropped() {
    let mut server = PrivatePostgres::start_default().unwrap();
    server.pause().unwrap();
    let pids = server.pids().unwrap();
    drop(server);
    for pid in pids {
        assert!(clock::wait_for(STOP_LIMIT, || process::state(pid).is_none_or(|state| state == 'Z')));
    }
}

#[test]
fn killed_backends_are_those_of_clients_and_the_server_comes_back() {
    let server = PrivatePostgres::start_default().unwrap();
    let options = wire::ConnectOptions::new(server.tcp_address().into(), USER, DATABASE);
    wire::block_on(async {
        let mut one = wire::Connection::connect(&options).await.unwrap();
        let mut two = wire::Connection::connect(&options).await.unwrap();
        let mut expected = vec![one.server_pid().await.unwrap(), two.server_pid().await.unwrap()];
        assert_eq!(server.backend_pids().unwrap(), expected);
        let mut killed = server.kill_backends(Signal::KILL).unwrap();
        killed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(killed, expected);
        // The postmaster may still pass on a warning to the other session; in the end both are closed.
        while one.read_message().await.is_ok() {}
        while two.read_message().await.is_ok() {}
    })
    .unwrap();
    assert!(clock::wait_for(START_LIMIT, || server.admin("select 1").is_ok()));
}

#[test]
fn a_stopped_server_refuses_and_a_restarted_one_has_its_data() {
    let mut server = PrivatePostgres::start_default().unwrap();
    server.admin("create table kept as select 7 as number").unwrap();
    server.stop(StopMode::Immediate).unwrap();
    assert!(std::net::TcpStream::connect(server.tcp_address()).is_err());
    server.start_again().unwrap();
    assert_eq!(say(&server, "select number from kept"), "7");
    server.restart(StopMode::Fast).unwrap();
    assert_eq!(say(&server, "select number from kept"), "7");
}

#[test]
#[ignore = "the owner that the next test kills"]
fn owner_to_be_killed() {
    use std::io::Write as _;
    let server = PrivatePostgres::start_default().unwrap();
    println!("server {} {}", server.pid().unwrap(), server.socket_dir().display());
    std::io::stdout().flush().unwrap();
    clock::rest(START_LIMIT);
}

#[test]
fn a_server_whose_owner_was_killed_is_stopped_and_its_folder_removed() {
    use std::io::{BufRead as _, BufReader};
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres::tests::owner_to_be_killed", "--ignored", "--nocapture"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains("server ")).unwrap();
    let mut words = line.split(' ').skip_while(|word| *word != "server").skip(1);
    let pid = words.next().unwrap().parse().unwrap();
    let folder = PathBuf::from(words.next().unwrap());
    assert!(process::state(pid).is_some() && folder.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(clock::wait_for(STOP_LIMIT, || process::state(pid).is_none() && !folder.exists()));
}
