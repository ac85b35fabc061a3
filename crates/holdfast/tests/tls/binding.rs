//! SCRAM with channel binding.

use drill::postgres::PostgresOptions;

use crate::certificates::Files;
use crate::clients::psql;
use crate::support::House;
use crate::tls_client::{TlsClient, config, message, startup};

const PASSWORD: &str = "pencil";

fn start(files: &Files) -> House {
    let setup = |setup: drill::peer::PoolerSetup| {
        files.offer(setup, "prefer").setting("auth_type", "scram-sha-256").user("bench", PASSWORD)
    };
    House::build(&crate::support::holdfast(), PostgresOptions::default(), false, setup)
}

/// `channel_binding=require` was refused.
/// pgbouncer #522
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_insists_on_channel_binding_gets_it_over_tls_and_only_there() {
    let files = Files::new();
    let certificates =
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_RSA_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384];
    for algorithm in certificates {
        files.put("server", &files.authority.certify_with("127.0.0.1", algorithm));
        let house = start(&files);
        let with = |more: &str| psql(&house, &format!("password={PASSWORD} {more}"), "select 7");
        assert_eq!(with("sslmode=require channel_binding=require"), Ok("7".to_owned()));
        assert_eq!(with("sslmode=require channel_binding=disable"), Ok("7".to_owned()));
        let told = with("sslmode=disable channel_binding=require").unwrap_err();
        assert!(told.contains("channel binding required, but SSL not in use"), "{told}");
        let told =
            psql(&house, "password=wrong sslmode=require channel_binding=require", "select 7").unwrap_err();
        assert!(told.contains("password authentication failed"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_certificate_offers_decides_which_mechanisms_are_offered() {
    let files = Files::new();
    let offered = || {
        let house = start(&files);
        let mut client =
            TlsClient::connect(house.pooler.address(), &config(&files.read("ca.pem"), &[])).unwrap();
        std::io::Write::write_all(&mut client.stream, &startup("bench", "bench")).unwrap();
        let (tag, body) = client.message().unwrap();
        assert_eq!(tag, b'R');
        (client, body[4..].to_vec(), house)
    };
    let (mut client, mechanisms, _house) = offered();
    assert_eq!(mechanisms, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    // As if somebody between us had taken the first one away.
    let first = b"SCRAM-SHA-256\0\0\0\0\x1cy,,n=,r=rOprNGfwEbeRWgbNEkqO";
    std::io::Write::write_all(&mut client.stream, &message(b'p', first)).unwrap();
    let (tag, body) = client.message().unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(tag == b'E' && text.contains("C28000") && text.contains("channel binding negotiation"), "{text}");
    files.put("server", &files.authority.certify_with("127.0.0.1", &rcgen::PKCS_ED25519));
    // The hash of such a certificate would be that of its signature, which has none; the authority's has one.
    assert_eq!(offered().1, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
}
