use super::*;
use crate::root::RootKey;

const NOW_MS: u64 = 1_800_000_000_000;
const EXPORTED: [u8; 32] = [5; 32];

struct Case {
    root: RootKey,
    certificate: RoleCertificate,
    claims: PeerClaims,
}

fn case(role: CertificateRole) -> Case {
    let root = RootKey::generate().unwrap();
    let certificate = root.issue(role, &["relay.example".to_owned()], NOW_MS).unwrap();
    let claims = PeerClaims { network: root.network(), relay: RelayId::random(), epoch: 7 };
    Case { root, certificate, claims }
}

impl Case {
    fn verify(&self, claims: &PeerClaims, signature: &[u8], exporter: &[u8; 32], now_ms: u64) -> bool {
        claims.verify(self.certificate.chain(), signature, exporter, now_ms).is_ok()
    }
}

#[test]
fn a_relay_shows_itself_for_one_start_on_one_connection() {
    let case = case(CertificateRole::Relay);
    let signature = case.claims.sign(&case.certificate, &EXPORTED).unwrap();
    assert!(signature.len() <= MAX_PEER_PROOF_BYTES && case.certificate.chain().len() <= MAX_PEER_CHAIN);
    assert!(case.verify(&case.claims, &signature, &EXPORTED, NOW_MS));
    assert!(!case.verify(&case.claims, &signature, &[6; 32], NOW_MS), "another connection");
    let claims = case.claims;
    assert!(!case.verify(&PeerClaims { epoch: 8, ..claims }, &signature, &EXPORTED, NOW_MS));
    assert!(!case.verify(&PeerClaims { relay: RelayId::random(), ..claims }, &signature, &EXPORTED, NOW_MS));
    assert!(!case.verify(&claims, &[], &EXPORTED, NOW_MS));
    let years = 365 * 86_400_000;
    assert!(!case.verify(&claims, &signature, &EXPORTED, NOW_MS + years), "an expired certificate");
}

#[test]
fn other_roles_and_other_networks_are_strangers() {
    for role in [CertificateRole::Api, CertificateRole::Proxy] {
        let case = case(role);
        let signature = case.claims.sign(&case.certificate, &EXPORTED).unwrap();
        assert!(!case.verify(&case.claims, &signature, &EXPORTED, NOW_MS));
    }
    let (here, there) = (case(CertificateRole::Relay), case(CertificateRole::Relay));
    let claims = PeerClaims { network: here.root.network(), ..there.claims };
    let signature = claims.sign(&there.certificate, &EXPORTED).unwrap();
    assert!(!there.verify(&claims, &signature, &EXPORTED, NOW_MS), "another network's relay");
    // Somebody who has only seen the certificate.
    let signature = here.claims.sign(&there.certificate, &EXPORTED).unwrap();
    assert!(!here.verify(&here.claims, &signature, &EXPORTED, NOW_MS));
    assert!(here.claims.verify(&[], &signature, &EXPORTED, NOW_MS).is_err());
}
