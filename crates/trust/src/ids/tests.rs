use super::*;
use proptest::prelude::*;

#[test]
fn the_name_of_a_network_is_52_letters_and_reads_back() {
    let network = NetworkId::of_root_key(&[7; 32]);
    let text = network.to_string();
    assert_eq!(text.len(), 52);
    assert_eq!(text.parse(), Ok(network));
    assert_eq!(serde_json::to_string(&network).unwrap(), format!("\"{text}\""));
    assert_eq!(text.to_uppercase().parse::<NetworkId>(), Err(ParseError::NetworkId));
}

#[test]
fn ids_made_later_sort_later_and_differ() {
    let (early, late) = (ContractId::at(1_000_000), ContractId::at(1_000_001));
    assert!(early < late);
    assert_ne!(ContractId::at(5), ContractId::at(5));
    assert_eq!(ContractId::from_bytes(early.bytes()), early);
}

#[test]
fn roles_have_the_numbers_of_the_protocol() {
    for role in [Role::Provider, Role::App, Role::Proxy] {
        assert_eq!(Role::from_number(role.number()), Some(role));
        assert_eq!(role.name().parse(), Ok(role));
    }
    assert_eq!(Role::from_number(0), None);
    assert_eq!(Role::from_number(4), None);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        if let Ok(network) = text.parse::<NetworkId>() {
            prop_assert_eq!(network.to_string(), text.clone());
        }
        if let Ok(thumbprint) = text.parse::<Thumbprint>() {
            prop_assert_eq!(thumbprint.to_string(), text.clone());
        }
        let _ = text.parse::<KeyId>();
        let _ = text.parse::<ClientId>();
    }

    #[test]
    fn hashes_read_back(bytes: [u8; 32], short: [u8; 16]) {
        prop_assert_eq!(Thumbprint(bytes).to_string().parse(), Ok(Thumbprint(bytes)));
        prop_assert_eq!(KeyId(short).to_string().parse(), Ok(KeyId(short)));
        prop_assert_eq!(NetworkId(bytes).to_string().parse(), Ok(NetworkId(bytes)));
    }
}
