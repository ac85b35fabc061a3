use super::*;
use crate::error::TokenError;
use crate::ring::{KeyState, RingKey};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use proptest::prelude::*;

const NETWORK: NetworkId = NetworkId([5; 32]);
const NOW_MS: u64 = 1_800_000_000_000;

#[test]
fn a_token_says_what_was_signed_until_it_expires() {
    let key = TokenKey::generate().unwrap();
    let ring = ring(NETWORK, &key);
    let token = client().sign(&key).unwrap();
    assert!(token.len() < 700, "{} bytes", token.len());
    assert_eq!(ClientClaims::verify(&token, &ring, NOW_MS), Ok(client()));
    let last_ms = client().expires_at_s * 1_000 - 1;
    assert_eq!(ClientClaims::verify(&token, &ring, last_ms), Ok(client()));
    assert_eq!(ClientClaims::verify(&token, &ring, last_ms + 1), Err(TokenError::Expired));
}

#[test]
fn a_contract_is_no_token_and_a_token_no_contract() {
    let key = TokenKey::generate().unwrap();
    let ring = ring(NETWORK, &key);
    let contract = contract().sign(&key).unwrap();
    assert_eq!(ContractClaims::verify(&contract, &ring, NOW_MS).unwrap().bytes, 1 << 20);
    assert_eq!(ClientClaims::verify(&contract, &ring, NOW_MS), Err(TokenError::Malformed));
    let token = client().sign(&key).unwrap();
    assert_eq!(ContractClaims::verify(&token, &ring, NOW_MS), Err(TokenError::Malformed));
}

#[test]
fn an_unknown_key_and_another_network_are_told_apart() {
    let (key, other) = (TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
    let token = client().sign(&key).unwrap();
    let unknown = ClientClaims::verify(&token, &ring(NETWORK, &other), NOW_MS);
    assert_eq!(unknown, Err(TokenError::UnknownKey(key.id())));
    let elsewhere = ClientClaims::verify(&token, &ring(NetworkId([6; 32]), &key), NOW_MS);
    assert_eq!(elsewhere, Err(TokenError::OtherNetwork));
}

#[test]
fn changed_claims_and_the_algorithm_none_are_refused() {
    let key = TokenKey::generate().unwrap();
    let ring = ring(NETWORK, &key);
    let token = client().sign(&key).unwrap();
    let parts: Vec<_> = token.split('.').collect();
    let claims = serde_json::to_vec(&ClientClaims { role: Role::Proxy, ..client() }).unwrap();
    let changed = format!("{}.{}.{}", parts[0], BASE64_URL_SAFE_NO_PAD.encode(claims), parts[2]);
    assert_eq!(ClientClaims::verify(&changed, &ring, NOW_MS), Err(TokenError::Signature));
    for header in [
        r#"{"alg":"none","typ":"holdfast-client+jwt","kid":"KID"}"#,
        r#"{"alg":"HS256","typ":"holdfast-client+jwt","kid":"KID"}"#,
    ] {
        let header = BASE64_URL_SAFE_NO_PAD.encode(header.replace("KID", &key.id().to_string()));
        let forged = format!("{header}.{}.{}", parts[1], parts[2]);
        assert_eq!(ClientClaims::verify(&forged, &ring, NOW_MS), Err(TokenError::Malformed));
    }
}

#[test]
fn what_is_longer_than_a_token_is_not_looked_at() {
    let key = TokenKey::generate().unwrap();
    let long = format!("{}{}", client().sign(&key).unwrap(), "A".repeat(crate::MAX_TOKEN_LEN));
    assert_eq!(ClientClaims::verify(&long, &ring(NETWORK, &key), NOW_MS), Err(TokenError::Malformed));
}

/// Row 90: a renewed certificate once changed the key that signs sessions, and everybody was logged out.
#[test]
fn renewing_a_tls_certificate_never_changes_the_token_key() {
    let root = crate::RootKey::generate().unwrap();
    let key = TokenKey::from_seed(&[8; 32]).unwrap();
    let token = ClientClaims { network: root.network(), ..client() }.sign(&key).unwrap();
    let ring = ring(root.network(), &key);
    let names = ["127.0.0.1".to_owned()];
    let first = root.issue(crate::CertificateRole::Api, &names, NOW_MS).unwrap();
    let second = root.issue(crate::CertificateRole::Api, &names, NOW_MS + 60 * 86_400_000).unwrap();
    assert_ne!(first.key_pem(), second.key_pem());
    assert_eq!(root.network(), crate::RootKey::from_seed(root.seed()).unwrap().network());
    assert_eq!(key.id(), TokenKey::from_seed(key.seed()).unwrap().id());
    assert!(ClientClaims::verify(&token, &ring, NOW_MS).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_refused_without_panic(text in ".{0,300}") {
        prop_assert!(ClientClaims::verify(&text, &ring(NETWORK, &TokenKey::from_seed(&[8; 32]).unwrap()), NOW_MS).is_err());
    }

    #[test]
    fn a_token_with_one_letter_changed_is_refused(at in 0_usize..400, letter in "[A-Za-z0-9_.-]") {
        let key = TokenKey::from_seed(&[8; 32]).unwrap();
        let mut token = client().sign(&key).unwrap();
        let at = at % token.len();
        prop_assume!(token[at..=at] != letter);
        token.replace_range(at..=at, &letter);
        prop_assert!(ClientClaims::verify(&token, &ring(NETWORK, &key), NOW_MS).is_err());
    }
}

fn ring(network: NetworkId, key: &TokenKey) -> KeyRing {
    KeyRing::new(network, 1, 0, vec![RingKey::new(*key.public_key(), KeyState::Signing)]).unwrap()
}

fn client() -> ClientClaims {
    ClientClaims {
        network: NETWORK,
        client: ClientId::from_bytes([1; 16]),
        role: Role::Provider,
        thumbprint: Thumbprint([2; 32]),
        epoch: NOW_MS,
        issued_at_s: NOW_MS / 1_000,
        expires_at_s: (NOW_MS + TOKEN_LIFE_MS) / 1_000,
    }
}

fn contract() -> ContractClaims {
    ContractClaims {
        network: NETWORK,
        contract: ContractId::from_bytes([3; 16]),
        payer: AccountId::from_bytes([4; 16]),
        opener: ClientId::from_bytes([1; 16]),
        bytes: 1 << 20,
        expires_at_s: NOW_MS / 1_000 + 60,
        offline: false,
    }
}
