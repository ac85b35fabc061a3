//! TLS to the server, by an authority of one's own; and never to one of another's.

use super::*;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use drill::redis::PrivateRedis;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_believed_by_its_authority_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, other) = (authority("ours"), authority("other"));
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &ours).unwrap();
    let paths = [
        file("server.pem", pem("CERTIFICATE", certificate.der())),
        file("server.key", pem("PRIVATE KEY", &key.serialize_der())),
        file("ca.pem", pem("CERTIFICATE", ours.der())),
        file("other.pem", pem("CERTIFICATE", other.der())),
    ];
    let [certificate, key, ca, wrong] = paths.map(|path| path.to_str().unwrap().to_owned());
    let port = drill::port::PortLease::take().unwrap();
    let options = [
        "--tls-port",
        &port.number().to_string(),
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-auth-clients",
        "no",
        "--tls-ca-cert-file",
        &ca,
    ];
    // Its account must be able to read them.
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for path in [&certificate, &key, &ca] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let redis = match PrivateRedis::start(RedisKind::Redis, &options) {
        Ok(redis) => redis,
        Err(error) if format!("{error:#}").contains("Bad directive") => {
            println!("not run: this Redis was built without TLS");
            return;
        }
        Err(error) => panic!("{error:#}"),
    };
    let url = format!("rediss://localhost:{}", port.number());
    let value_key = Key::new("test", "a");
    let cache = open(&CacheConfig { ca: Some(ca.into()), ..CacheConfig::at(&url) });
    comes_back(&cache, &value_key).await;
    cache.put(&value_key, &vec![3; 60_000], MINUTE).await.unwrap();
    let mut hints = listening(&cache, Channel::CHANGES).await;
    publish(&cache, Channel::CHANGES).await;
    heard(&mut hints).await;
    let deceived = open(&CacheConfig { ca: Some(wrong.into()), ..CacheConfig::at(&url) });
    for _ in 0..3 {
        assert!(deceived.get(&value_key).await.is_err());
    }
    assert!(redis.command(&["PING"]).is_ok());
}
