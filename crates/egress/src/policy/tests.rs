use super::*;

fn admit(policy: &Policy, target: &str) -> Result<String, Refusal> {
    let target: Target = target.parse().unwrap();
    policy.admit(&target).map(|way| match way {
        Way::Connect(checked) => checked.address().to_string(),
        Way::Resolve(name) => format!("resolve {name}"),
    })
}

#[test]
fn literal_targets_are_judged_at_once_and_names_are_resolved_first() {
    let policy = Policy::new(Ports::Web);
    assert_eq!(admit(&policy, "8.8.8.8:443").unwrap(), "8.8.8.8:443");
    assert_eq!(admit(&policy, "[::ffff:8.8.8.8]:443").unwrap(), "8.8.8.8:443");
    assert_eq!(admit(&policy, "Example.COM.:80").unwrap(), "resolve example.com");
    assert_eq!(admit(&policy, "0x7f.1:80"), Err(Refusal::Special(Special::Loopback)));
    assert_eq!(admit(&policy, "example.com:22"), Err(Refusal::Port(PortRefusal::NotAllowed)));
}

#[test]
fn names_of_one_house_are_not_looked_up() {
    let policy = Policy::new(Ports::Web);
    for name in
        ["localhost", "LOCALHOST.", "a.localhost", "printer.local", "x.onion", "nas.home.arpa", "db.internal"]
    {
        assert_eq!(admit(&policy, &format!("{name}:80")), Err(Refusal::SpecialName), "{name}");
    }
    for name in ["notlocalhost", "local.example", "localhost.example.com"] {
        assert!(admit(&policy, &format!("{name}:80")).is_ok(), "{name}");
    }
}

#[test]
fn every_answer_of_a_resolver_is_checked() {
    let mut policy = Policy::new(Ports::Web);
    policy.set_own(vec![
        Network::single("93.184.216.34".parse().unwrap()),
        Network::new("2a00:1:2:3::4".parse().unwrap(), 64),
    ]);
    policy.set_servers(vec![Network::single("93.184.216.35".parse().unwrap())]);
    let check = |address: &str| policy.check(address.parse().unwrap(), 443).map(Checked::address);
    assert_eq!(check("93.184.216.34"), Err(Refusal::Own));
    assert_eq!(check("::ffff:93.184.216.34"), Err(Refusal::Own));
    assert_eq!(check("2a00:1:2:3::5"), Err(Refusal::Own), "a neighbour in the same house");
    assert_eq!(check("93.184.216.35"), Err(Refusal::Server));
    assert_eq!(check("192.168.1.1"), Err(Refusal::Special(Special::Private)));
    assert_eq!(check("93.184.216.36"), Ok("93.184.216.36:443".parse().unwrap()));
}

#[test]
fn an_exact_exception_holds_for_that_address_and_port_alone() {
    let policy = Policy::new(Ports::Web).with_exact(vec!["127.0.0.1:8081".parse().unwrap()]);
    assert_eq!(admit(&policy, "127.0.0.1:8081").unwrap(), "127.0.0.1:8081");
    assert_eq!(admit(&policy, "[::ffff:127.0.0.1]:8081").unwrap(), "127.0.0.1:8081");
    assert!(admit(&policy, "127.0.0.1:8082").is_err());
    assert!(admit(&policy, "127.0.0.2:8081").is_err());
    assert!(admit(&policy, "[::1]:8081").is_err());
    let resolved = policy.check("127.0.0.1".parse().unwrap(), 8081);
    assert!(resolved.is_err(), "a name that resolves to it is not excepted");
}

#[test]
fn an_exact_exception_is_no_name_no_range_and_no_mail_server() {
    assert_eq!("localhost:80".parse::<ExactTarget>(), Err(ExactError::Name));
    assert_eq!("127.0.0.1:25".parse::<ExactTarget>(), Err(ExactError::Never));
    for text in ["127.0.0.0/8:80", "127.0.0.1", "127.0.0.1:80-90", "*:80"] {
        assert!(text.parse::<ExactTarget>().is_err(), "{text}");
    }
}
