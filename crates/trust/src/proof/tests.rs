use super::*;
use proptest::prelude::*;

const NETWORK: NetworkId = NetworkId([3; 32]);
const EXPORTER: [u8; 32] = [9; 32];

#[test]
fn a_hello_holds_for_one_connection_one_start_one_network_one_identity() {
    let (identity, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let proof = Proof::hello(&identity, NETWORK, 17, &EXPORTER);
    assert!(proof.is_hello(identity.public(), NETWORK, 17, &EXPORTER));
    assert!(!proof.is_hello(identity.public(), NETWORK, 17, &[8; 32]), "replayed on another connection");
    assert!(!proof.is_hello(identity.public(), NETWORK, 18, &EXPORTER), "another epoch");
    assert!(!proof.is_hello(identity.public(), NetworkId([4; 32]), 17, &EXPORTER), "another network");
    assert!(!proof.is_hello(other.public(), NETWORK, 17, &EXPORTER), "another identity");
}

#[test]
fn a_signature_for_one_purpose_is_none_for_another() {
    let identity = Identity::generate().unwrap();
    let request = RequestId::random();
    let hello = Proof::hello(&identity, NETWORK, 1, &EXPORTER);
    assert!(!hello.is_registration(identity.public(), NETWORK, request, Role::Provider));
    let registration = Proof::registration(&identity, NETWORK, request, Role::Provider);
    assert!(registration.is_registration(identity.public(), NETWORK, request, Role::Provider));
    assert!(!registration.is_registration(identity.public(), NETWORK, RequestId::random(), Role::Provider));
    assert!(!registration.is_registration(identity.public(), NETWORK, request, Role::Proxy));
}

#[test]
fn the_proof_of_a_request_is_for_its_method_path_body_and_time_only() {
    let identity = Identity::generate().unwrap();
    let proof = RequestProof::sign(&identity, NETWORK, 1_000_000, "POST", "/v1/contracts", b"{}");
    let is_of =
        |proof: RequestProof, method, path, body| proof.is_of(identity.public(), NETWORK, method, path, body);
    assert!(is_of(proof, "POST", "/v1/contracts", b"{}"));
    assert!(!is_of(proof, "PUT", "/v1/contracts", b"{}"));
    assert!(!is_of(proof, "POST", "/v1/contracts/x", b"{}"));
    assert!(!is_of(proof, "POST", "/v1/contracts", b"{ }"));
    assert!(!is_of(RequestProof { time_ms: 1_000_001, ..proof }, "POST", "/v1/contracts", b"{}"));
    assert!(proof.is_timely(1_000_000 + PROOF_SKEW_MS) && proof.is_timely(1_000_000 - PROOF_SKEW_MS));
    assert!(!proof.is_timely(1_000_001 + PROOF_SKEW_MS) && !proof.is_timely(999_999 - PROOF_SKEW_MS));
    assert_eq!(proof.to_string().parse(), Ok(proof));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9]{0,25}[.]?[A-Za-z0-9_-]{0,90}") {
        if let Ok(proof) = text.parse::<RequestProof>() {
            prop_assert_eq!(proof.to_string().parse(), Ok(proof));
        }
    }
}
