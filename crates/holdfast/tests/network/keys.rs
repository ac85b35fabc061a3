//! `holdfast keys` on a network that runs.

use crate::house::{House, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use trust::{CertificateRole, JoinLink, RootKey};

/// A certificate that is dated so far back has a day left, ms.
const NEARLY_OVER_MS: u64 = 89 * 86_400_000;

#[test]
fn keys_rotate_and_certificates_are_renewed_while_everything_runs() {
    let house = House::start();
    let before = status(&house);
    assert_eq!((before["ring"].as_u64(), before["keys"].as_array().unwrap().len()), (Some(1), 1));
    let verifiers = before["verifiers"].as_array().unwrap();
    assert_eq!(verifiers.len(), 2, "a relay and an api: {before}");
    assert!(verifiers.iter().all(|one| one["is_current"] == true), "{before}");
    let pids = [house.pid_of("roles"), house.pid_of("pooler")];
    let connections = connections(&house);
    let (first_key, files) = (before["keys"][0]["key"].clone(), secrets(&house));

    // One that is about to end is renewed by itself, and taken by those who run.
    let link: JoinLink = house.status()["lines"]["join_link"].as_str().unwrap().parse().unwrap();
    let root = fs::read_to_string(house.data().join("root.key")).unwrap();
    let root = RootKey::from_seed(&decoded(root.trim())).unwrap();
    let past_ms = clock::unix_ms() - NEARLY_OVER_MS;
    let names = ["127.0.0.1".to_owned()];
    for (name, role) in [("api", CertificateRole::Api), ("relay", CertificateRole::Relay)] {
        let old = root.issue(role, &names, past_ms).unwrap();
        fs::write(house.data().join(format!("{name}.crt")), old.chain_pem()).unwrap();
        fs::write(house.data().join(format!("{name}.key")), old.key_pem()).unwrap();
    }
    let served = presented(&link);
    wait_until("the certificates are renewed", || {
        let lines = status(&house);
        let lines = lines["certificates"].as_array().unwrap().clone();
        lines.iter().all(|line| line["expires_at_ms"].as_u64() > Some(clock::unix_ms() + NEARLY_OVER_MS))
    });
    wait_until("the api serves the new one", || {
        let now = presented(&link);
        now != served && now == leaf(&house, "api")
    });
    // And by hand.
    let renewed = run(&house, &["keys", "renew-certificates", "--json"]);
    assert_eq!(renewed["certificates"].as_array().unwrap().len(), 3);
    wait_until("the api serves that one", || presented(&link) == leaf(&house, "api"));
    assert_eq!(secrets(&house), files, "no other key has changed");
    assert_eq!(status(&house)["keys"], before["keys"]);

    let done = run(&house, &["keys", "rotate", "--settle-s", "1", "--json"]);
    let after = status(&house);
    assert_eq!(after["ring"], done["ring"]);
    let states: Vec<_> = after["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| (key["key"].clone(), key["state"].clone()))
        .collect();
    assert_eq!(states, [(first_key, "retired".into()), (done["key"].clone(), "signing".into())]);
    let api = after["verifiers"].as_array().unwrap().iter().find(|one| one["kind"] == "api").unwrap();
    assert_eq!(api["signs_with"], done["key"]);

    assert_eq!([house.pid_of("roles"), house.pid_of("pooler")], pids, "nothing was started again");
    assert_eq!(self::connections(&house), connections, "no session has ended");
    let page = house.shell(house.status()["lines"]["curl"].as_str().unwrap());
    assert!(String::from_utf8_lossy(&page.stdout).contains("came through a provider"), "streams flow");

    // A client that nobody knows, and one that is put out for good.
    let unknown =
        house.holdfast(&["keys", "revoke", "019a3c5e-0000-7000-8000-000000000001"]).output().unwrap();
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && said.contains("no client is called"), "{said}");
    let client = client::Glance::at(&house.data().join("provider")).unwrap().unwrap().client.to_string();
    let revoked = run(&house, &["keys", "revoke", &client, "--now", "--json"]);
    assert_eq!(revoked["seen_by_all"], true);
    wait_until("the provider is told", || provider(&house)["held"]["code"] == "revoked");
}

fn run(house: &House, words: &[&str]) -> Value {
    let output = house.holdfast(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn status(house: &House) -> Value {
    run(house, &["keys", "status", "--json"])
}

fn provider(house: &House) -> Value {
    let state = house.data().join("provider");
    let line = format!("{} provider status --json --state {}", house.program(), state.display());
    serde_json::from_slice(&house.shell(&line).stdout).unwrap_or_default()
}

fn connections(house: &House) -> u64 {
    provider(house)["link"]["connections"].as_u64().unwrap()
}

fn secrets(house: &House) -> Vec<String> {
    ["root.key", "token.key", "secrets.toml"]
        .map(|name| fs::read_to_string(house.data().join(name)).unwrap())
        .into()
}

fn decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// The certificate that stands in a file, as PEM.
fn leaf(house: &House, name: &str) -> Vec<u8> {
    let read = |extension| fs::read_to_string(house.data().join(format!("{name}.{extension}"))).unwrap();
    trust::RoleCertificate::from_pem(&read("crt"), &read("key")).unwrap().chain()[0].to_vec()
}

/// The certificate that the api presents.
fn presented(link: &JoinLink) -> Vec<u8> {
    let config = trust::client_config(link.network, CertificateRole::Api, &[b"http/1.1"]).unwrap();
    let name = link.host.clone().try_into().unwrap();
    let mut tls = rustls::ClientConnection::new(Arc::clone(&config), name).unwrap();
    let mut socket = TcpStream::connect((link.host.as_str(), link.port)).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    stream.write_all(b"GET /status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    tls.peer_certificates().unwrap()[0].to_vec()
}
