//! Logins that meet a limit or a reload.

use super::bench::{Bench, config};
use pgwire::accept::LoginSecret;
use pgwire::scram::Verifier;
use pooling::seam::{DeriveVerifier, DerivedVerifier};
use settings::pooler::{PoolerConfig, Secret};
use std::sync::Arc;

fn scram_config(password: &str) -> Arc<PoolerConfig> {
    let mut changed = PoolerConfig::clone(&config("max_client_conn = 1\n"));
    changed.general.auth_type = settings::pooler::AuthType::ScramSha256;
    changed.secrets.insert("u".to_owned(), Secret::Plain(password.to_owned()));
    Arc::new(changed)
}

fn derive(bench: &mut Bench, request: &DeriveVerifier) {
    let Secret::Plain(password) = &request.secret else { panic!("a plain password") };
    let verifier = Verifier::derive(password.as_bytes(), &request.salt, request.iterations).expect("valid");
    let user = request.user.clone();
    let derived = DerivedVerifier { client: request.client, user, verifier: Some(Arc::new(verifier)) };
    bench.engine.on_verifier(&mut bench.wire, derived);
}

#[test]
fn a_password_that_was_changed_while_it_was_hashed_does_not_stay_valid() {
    let mut bench = Bench::new(scram_config("old"));
    bench.connect("db");
    let old = bench.wire.derives.remove(0);
    bench.engine.reload(&mut bench.wire, scram_config("new"));
    derive(&mut bench, &old);
    let new = bench.wire.derives.remove(0);
    assert_eq!(new.secret, Secret::Plain("new".to_owned()), "it is hashed again");
    derive(&mut bench, &new);
    assert!(bench.wire.derives.is_empty());
    bench.connect("db");
    assert!(bench.wire.derives.is_empty(), "the hash is kept");
}

#[test]
fn clients_that_log_in_at_the_same_time_do_not_pass_the_limit() {
    let mut changed = PoolerConfig::clone(&config("max_client_conn = 2\n"));
    changed.general.auth_type = settings::pooler::AuthType::Plain;
    changed.secrets.insert("u".to_owned(), Secret::Plain("x".to_owned()));
    let mut bench = Bench::new(Arc::new(changed));
    let clients: Vec<_> = (0..5).map(|_| bench.connect("db")).collect();
    for &client in &clients {
        bench.say(client, &super::bench::message(b'p', b"x\0"));
    }
    let closed = clients.iter().filter(|&&client| bench.is_closed(client)).count();
    assert_eq!(closed, 3, "two are let in");
}

#[test]
fn a_login_whose_password_cannot_be_hashed_hears_so_and_the_next_one_asks_again() {
    let mut bench = Bench::new(scram_config("secret"));
    let client = bench.connect("db");
    let request = bench.wire.derives.remove(0);
    let failed = DerivedVerifier { client: request.client, user: request.user, verifier: None };
    bench.engine.on_verifier(&mut bench.wire, failed);
    assert!(bench.is_closed(client));
    let told = bench.heard(client);
    assert!(told.windows(6).any(|part| part == b"C53300"), "it is told why: {told:?}");
    bench.connect("db");
    assert_eq!(bench.wire.derives.len(), 1);
}

#[test]
fn a_stored_verifier_is_asked_for_by_scram_also_where_the_method_is_plain() {
    let mut changed = PoolerConfig::clone(&config(""));
    changed.general.auth_type = settings::pooler::AuthType::Plain;
    let verifier = Verifier::derive(b"pencil", b"0123456789abcdef", 4096).expect("valid").to_string();
    changed.secrets.insert("u".to_owned(), Secret::ScramVerifier(verifier));
    let mut bench = Bench::new(Arc::new(changed));
    let client = bench.connect("db");
    // AuthenticationSASL, and not AuthenticationCleartextPassword (3).
    assert_eq!(bench.heard(client).get(..9), Some(&b"R\0\0\0\x17\0\0\0\x0a"[..]));
}

#[test]
fn a_stored_secret_is_of_the_same_kind_to_the_configuration_and_to_a_login() {
    let verifier = Verifier::derive(b"pencil", &[7; 16], 4096).expect("valid").to_string();
    let long_salt = |bytes: usize| Verifier::derive(b"pencil", &vec![7; bytes], 1).map(|it| it.to_string());
    let md5 = "md57561d9278ce28197a2111de89346a5e5";
    let longest = long_salt(256).expect("the longest salt");
    assert!(long_salt(257).is_err());
    let too_long = longest.replacen("$1:", "$1:BwcH", 1);
    for text in [
        "",
        "pencil",
        "md5",
        md5,
        &md5.to_uppercase(),
        &md5.replace('a', "A"),
        &format!("{md5}0"),
        &verifier,
        &verifier[..verifier.len() - 4],
        &verifier.to_lowercase(),
        &verifier.replace("$4096:", "$0:"),
        &verifier.replace("$4096:", "$+4096:"),
        &verifier.replace("$4096:", "$2147483647:"),
        &verifier.replace("$4096:", "$2147483648:"),
        &longest,
        &too_long,
    ] {
        let written = match Secret::classify(text) {
            Secret::Plain(_) => "plain",
            Secret::Md5(_) => "md5",
            Secret::ScramVerifier(_) => "verifier",
        };
        let used = match LoginSecret::parse(text) {
            LoginSecret::Plain(_) => "plain",
            LoginSecret::Md5(_) => "md5",
            LoginSecret::Scram(_) => "verifier",
        };
        assert_eq!(written, used, "{text}");
    }
}
