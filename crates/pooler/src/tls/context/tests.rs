use super::super::fixtures::{Authority, Certificate, Folder};
use super::*;
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use settings::pooler::load as load_settings;

fn folder() -> Folder {
    let authority = Authority::new();
    let Certificate { pem, key_pem, .. } = authority.certify(&["localhost"], &PKCS_ECDSA_P256_SHA256);
    Folder::new(&[("key.pem", &key_pem), ("cert.pem", &pem), ("ca.pem", &authority.pem)])
}

/// Loads the settings with these lines, in which `@` is the folder.
fn load_with(folder: &Folder, lines: &str, before: &TlsContext) -> Result<TlsContext, Vec<Diagnostic>> {
    let path = folder.path("pgbouncer.ini");
    let lines = lines.replace('@', &folder.folder().display().to_string());
    let text = format!(
        "[databases]\n* = host=localhost\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = any\n{lines}\n"
    );
    std::fs::write(&path, text).unwrap();
    load(&load_settings(&path).unwrap(), before)
}

const CLIENT: &str =
    "client_tls_sslmode = allow\nclient_tls_key_file = @/key.pem\nclient_tls_cert_file = @/cert.pem";

#[test]
fn nothing_is_read_where_tls_is_disabled() {
    let lines = "server_tls_sslmode = disable\nserver_tls_ca_file = @/gone.pem";
    let context = load_with(&folder(), lines, &TlsContext::default()).unwrap();
    assert!(context.clients.is_none() && context.servers.is_none());
}

#[test]
fn what_has_not_changed_stays_and_what_has_changed_is_made_anew() {
    let folder = folder();
    let first = load_with(&folder, CLIENT, &TlsContext::default()).unwrap();
    let second = load_with(&folder, CLIENT, &first).unwrap();
    assert!(
        Arc::ptr_eq(first.clients.as_ref().unwrap(), second.clients.as_ref().unwrap()),
        "tickets stay good"
    );
    assert!(!second.differs_to_servers(&first));
    let Certificate { pem, key_pem, .. } = Certificate::self_signed(&["localhost"], &PKCS_ECDSA_P256_SHA256);
    folder.write("cert.pem", &pem);
    folder.write("key.pem", &key_pem);
    let third = load_with(&folder, CLIENT, &second).unwrap();
    assert!(!Arc::ptr_eq(second.clients.as_ref().unwrap(), third.clients.as_ref().unwrap()));
    assert_ne!(second.clients.unwrap().binding(), third.clients.as_ref().unwrap().binding());
    let other = load_with(&folder, &format!("{CLIENT}\nserver_tls_sslmode = require"), &third).unwrap();
    assert!(other.differs_to_servers(&third));
}

#[test]
fn a_bad_file_is_named_with_its_place_and_its_fault() {
    let folder = folder();
    folder.write("text.pem", "no certificate here\n");
    folder.write("other.pem", &Certificate::self_signed(&["x"], &PKCS_ED25519).key_pem);
    for (lines, place, reason) in [
        (CLIENT.replace("key.pem", "gone.pem"), 8, "No such file or directory"),
        (CLIENT.replace("cert.pem", "text.pem"), 9, "holds no certificate"),
        (CLIENT.replace("key.pem", "text.pem"), 8, "holds no private key"),
        (CLIENT.replace("key.pem", "other.pem"), 8, "is not the key of the certificate"),
        (
            "server_tls_sslmode = verify-ca\nserver_tls_ca_file = @/text.pem".to_owned(),
            8,
            "holds no certificate",
        ),
    ] {
        let errors = load_with(&folder, &lines, &TlsContext::default()).unwrap_err();
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(
            error.message.starts_with("TLS setup failed") && error.message.contains(reason),
            "{}",
            error.message
        );
        assert_eq!(error.place.as_ref().map(|place| place.line()), Some(place), "{lines}");
    }
}

#[test]
fn both_sides_are_told_of_at_once() {
    let folder = folder();
    let lines = format!("{CLIENT}\nserver_tls_sslmode = verify-ca\nserver_tls_ca_file = @/gone.pem");
    let errors =
        load_with(&folder, &lines.replace("cert.pem", "gone.pem"), &TlsContext::default()).unwrap_err();
    assert_eq!(errors.len(), 2);
}

#[test]
fn a_host_that_no_certificate_can_name_is_refused_only_where_names_are_compared() {
    let folder = folder();
    let peer = "127.0.0.1:5432".parse().unwrap();
    let servers = |mode: &str| {
        let lines = format!("server_tls_sslmode = {mode}\nserver_tls_ca_file = @/ca.pem");
        load_with(&folder, &lines, &TlsContext::default()).unwrap().servers.unwrap()
    };
    assert!(servers("verify-full").connect("no host", peer).is_err());
    assert!(servers("verify-ca").connect("no host", peer).is_ok());
    assert!(servers("verify-full").connect("db_1.internal", peer).is_ok());
    assert!(servers("verify-full").connect("::1", peer).is_ok());
}
