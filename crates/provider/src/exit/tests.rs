use super::*;
use drill::name_server::{NameServer, Question, Reply};
use egress::{Host, Name, Ports, Refusal, Special};
use std::net::{IpAddr, Ipv4Addr};
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_secs(10);

fn exit(reply: impl Fn(&Question) -> Reply + Send + 'static) -> (Exit, NameServer) {
    let server = NameServer::start(reply).unwrap();
    let exit = Exit::new(Policy::new(Ports::Open), Dns::Servers(vec![server.address()]));
    (exit, server)
}

/// Lets only these addresses pass: tests stay on loopback, which no policy lets pass.
fn only(allowed: &'static [&'static str], port: u16) -> impl Fn(IpAddr) -> Result<Checked, Refusal> {
    move |address| {
        if !allowed.iter().any(|text| *text == address.to_string()) {
            return Err(Refusal::Special(Special::Private));
        }
        let target = Target { host: Host::from(address), port };
        let exact = target.to_string().parse().unwrap();
        match Policy::default().with_exact(vec![exact]).admit(&target) {
            Ok(Way::Connect(checked)) => Ok(checked),
            other => panic!("{other:?}"),
        }
    }
}

async fn reach(
    exit: &Exit,
    name: &str,
    family: Family,
    check: impl Fn(IpAddr) -> Result<Checked, Refusal>,
) -> Result<SocketAddr, Failure> {
    let name: Name = match name.parse() {
        Ok(Host::Name(name)) => name,
        other => panic!("{other:?}"),
    };
    let addresses = Addresses::new(check, exit.resolver.lookups(&name, family));
    race(addresses, Instant::now() + PATIENCE).await.map(|reached| reached.address)
}

async fn connect(exit: &Exit, target: &str) -> Result<SocketAddr, Failure> {
    let target = target.parse().unwrap();
    exit.connect(&target, Family::Any, PATIENCE).await.map(|reached| reached.address)
}

fn addresses(texts: &[&str], keep_s: u32) -> Reply {
    Reply::Addresses(texts.iter().map(|text| text.parse().unwrap()).collect(), keep_s)
}

#[tokio::test]
async fn a_name_that_changes_its_meaning_between_two_lookups_gains_nothing() {
    let open = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = open.local_addr().unwrap().port();
    let secret = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (exit, server) = exit(|question| match question.before {
        0 => addresses(&["127.0.0.2"], 0),
        _ => addresses(&["127.0.0.1"], 0),
    });
    let allowed = only(&["127.0.0.2"], port);
    assert_eq!(reach(&exit, "rebind.test", Family::V4, &allowed).await, Ok(open.local_addr().unwrap()));
    assert_eq!(server.asked().len(), 1, "one question for one open: {:?}", server.asked());
    let second = reach(&exit, "rebind.test", Family::V4, &allowed).await;
    assert_eq!(second, Err(Failure::Policy(Refusal::Special(Special::Private))));
    let reached = tokio::time::timeout(Duration::from_millis(100), secret.accept()).await;
    assert!(reached.is_err(), "nobody came to the private address");
}

#[tokio::test]
async fn private_addresses_among_the_answers_are_passed_over() {
    let open = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = open.local_addr().unwrap().port();
    let secret = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (exit, _server) = exit(|_| addresses(&["127.0.0.1", "10.0.0.1", "127.0.0.2", "::1"], 60));
    let reached = reach(&exit, "mixed.test", Family::Any, only(&["127.0.0.2"], port)).await;
    assert_eq!(reached, Ok(open.local_addr().unwrap()));
    assert!(tokio::time::timeout(Duration::from_millis(100), secret.accept()).await.is_err());
}

#[tokio::test]
async fn names_of_private_addresses_are_refused_whatever_the_notation_of_the_answer() {
    let private = [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::1",
        "2001:0:102:304::1",
        "2001:db8::1",
        "ff02::1",
    ];
    let (exit, _server) = exit(move |question| {
        let place: usize = question.name.split('.').next().unwrap().trim_start_matches('n').parse().unwrap();
        addresses(&[private[place]], 60)
    });
    for (place, address) in private.iter().enumerate() {
        let refused = connect(&exit, &format!("n{place}.test:80")).await;
        assert!(matches!(refused, Err(Failure::Policy(Refusal::Special(_)))), "{address}: {refused:?}");
    }
}

#[tokio::test]
async fn literal_targets_are_refused_without_a_question_to_anybody() {
    let (exit, server) = exit(|_| Reply::NoSuchName);
    for host in
        ["127.0.0.1", "0x7f.1", "2130706433", "0177.1", "[::1]", "[::ffff:7f00:1]", "localhost", "127.0.0.1."]
    {
        let refused = connect(&exit, &format!("{host}:80")).await;
        assert!(matches!(refused, Err(Failure::Policy(_))), "{host}: {refused:?}");
    }
    assert_eq!(connect(&exit, "example.test:25").await.unwrap_err().label(), "policy");
    assert_eq!(server.asked(), []);
}

#[tokio::test]
async fn each_way_to_fail_has_its_own_name() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let (exit, _server) = exit(|question| match question.name.as_str() {
        "refused.test" => addresses(&["127.0.0.2"], 60),
        "failing.test" => Reply::Failure,
        "silent.test" => Reply::Silence,
        "empty.test" => addresses(&[], 60),
        _ => Reply::NoSuchName,
    });
    let of = async |name, family| reach(&exit, name, family, only(&["127.0.0.2"], port)).await;
    assert_eq!(of("refused.test", Family::Any).await, Err(Failure::Refused));
    assert_eq!(of("refused.test", Family::V6).await, Err(Failure::NameNotFound), "it has no IPv6 address");
    assert_eq!(of("missing.test", Family::Any).await, Err(Failure::NameNotFound));
    assert_eq!(of("empty.test", Family::Any).await, Err(Failure::NameNotFound));
    assert_eq!(of("failing.test", Family::Any).await, Err(Failure::Resolver));
    let begun = Instant::now();
    assert_eq!(of("silent.test", Family::Any).await, Err(Failure::Resolver));
    assert!(begun.elapsed() <= resolver::LOOKUP_TIME_MAX + Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_target_that_never_answers_is_given_up_before_the_openers_patience_ends() {
    let (target, _full) = unanswering().await;
    let exact = target.to_string().parse().unwrap();
    let exit = Exit::new(Policy::new(Ports::Web).with_exact(vec![exact]), Dns::default());
    let begun = Instant::now();
    let target = target.to_string().parse().unwrap();
    let patience = Duration::from_secs(1);
    let failed = exit.connect(&target, Family::Any, patience).await.unwrap_err();
    assert_eq!(failed, Failure::Timeout);
    assert!(begun.elapsed() < patience, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_second_address_is_tried_while_the_first_keeps_silent() {
    let (silent, _full) = unanswering().await;
    let answering = TcpListener::bind(("127.0.0.2", silent.port())).await.unwrap();
    let (exit, _server) = exit(|_| addresses(&["127.0.0.1", "127.0.0.2"], 60));
    let begun = Instant::now();
    let reached =
        reach(&exit, "two.test", Family::V4, only(&["127.0.0.1", "127.0.0.2"], silent.port())).await;
    assert_eq!(reached, Ok(answering.local_addr().unwrap()));
    // Answers may come in another order than they were given: then it is faster still.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn answers_are_kept_for_as_long_as_they_say() {
    let (exit, server) = exit(|_| addresses(&["10.0.0.1"], 600));
    let target = "kept.test:80".parse().unwrap();
    for _ in 0..5 {
        let refused = exit.connect(&target, Family::V4, PATIENCE).await.unwrap_err();
        assert_eq!(refused.label(), "policy");
    }
    assert_eq!(server.asked().len(), 1, "{:?}", server.asked());
}

#[tokio::test]
async fn a_literal_of_the_other_family_is_not_tried() {
    let exit = Exit::new(Policy::new(Ports::Web), Dns::default());
    let target = "8.8.8.8:443".parse().unwrap();
    assert_eq!(exit.connect(&target, Family::V6, PATIENCE).await.unwrap_err(), Failure::Family);
}

/// A listener whose queue is full: nobody ever answers there.
async fn unanswering() -> (SocketAddr, Vec<TcpStream>) {
    let listener = tokio::net::TcpSocket::new_v4().unwrap();
    listener.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = listener.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        queued.push(stream);
    }
    // It has to stay open, and nobody accepts.
    drop(tokio::spawn(async move { (std::future::pending::<()>().await, listener) }));
    (address, queued)
}
