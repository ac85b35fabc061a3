use super::*;

fn data() -> (tempfile::TempDir, DataFolder) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::create(folder.path()).unwrap();
    (folder, data)
}

#[test]
fn a_network_is_on_loopback_until_it_is_exposed() {
    let (_folder, data) = data();
    let first = Settings::load_or_write(&data, None, None).unwrap();
    assert!(first.listen.is_loopback());
    assert_eq!(first.public(7), "127.0.0.1:7");
    assert_eq!(Settings::load_or_write(&data, None, None).unwrap(), first, "ports stay");
    let exposed = Settings::load_or_write(&data, Some("net.example.org"), None).unwrap();
    assert!(exposed.listen.is_unspecified());
    assert_eq!((exposed.ports, exposed.public(7)), (first.ports, "net.example.org:7".to_owned()));
    assert!(exposed.names().contains(&"127.0.0.1".to_owned()));
}

#[test]
fn a_port_that_is_taken_is_not_chosen() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert_ne!(free_port(IpAddr::V4(Ipv4Addr::LOCALHOST), port), port);
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line() {
    let (_folder, data) = data();
    Settings::load_or_write(&data, None, None).unwrap();
    let text = data.read("up.toml").unwrap().unwrap();
    data.write("up.toml", &format!("{text}nonsense = 1\n")).unwrap();
    let error = Settings::load(&data).unwrap_err().to_string();
    assert!(error.contains("line 11") && error.contains("nonsense"), "{error}");
}

#[test]
fn secrets_stay_and_are_not_shown() {
    let (_folder, data) = data();
    let secrets = Secrets::load_or_write(&data).unwrap();
    assert_eq!(Secrets::load_or_write(&data).unwrap().operator, secrets.operator);
    assert!(!format!("{secrets:?}").contains(&secrets.operator));
    data.write("secrets.toml", &format!("operator = \"{}\"\n", secrets.operator)).unwrap();
    let error = Secrets::load(&data).unwrap_err().to_string();
    assert!(!error.contains(&secrets.operator), "{error}");
}
