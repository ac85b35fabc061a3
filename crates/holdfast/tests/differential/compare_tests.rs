//! The comparison sees what it has to see.

use drill::wire::Message;

use crate::compare::{Transcript, difference};

#[test]
fn the_comparison_sees_every_byte_but_keys_and_the_oids_of_tables() {
    let side = |messages: &[(u8, &[u8])]| {
        let part = messages.iter().map(|(kind, body)| Message { kind: *kind, body: body.to_vec() }).collect();
        Transcript { parts: vec![Vec::new(), part], trouble: None }
    };
    let column = |name: &str, oid: u32| {
        [
            &[0, 1][..],
            name.as_bytes(),
            &[0],
            &oid.to_be_bytes(),
            &[0, 1, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0],
        ]
        .concat()
    };
    let one = side(&[(b'K', b"one"), (b'T', &column("x", 20_000)), (b'Z', b"I")]);
    let same = side(&[(b'K', b"other"), (b'T', &column("x", 30_000)), (b'Z', b"I")]);
    assert_eq!(difference(&one, &same), None);
    for other in [
        side(&[(b'K', b"one"), (b'T', &column("y", 20_000)), (b'Z', b"I")]),
        side(&[(b'K', b"one"), (b'T', &column("x", 2_600)), (b'Z', b"I")]),
        side(&[(b'K', b"one"), (b'T', &column("x", 20_000)), (b'Z', b"T")]),
        side(&[(b'K', b"one"), (b'T', &column("x", 20_000))]),
        side(&[(b'K', b"one"), (b'N', b""), (b'T', &column("x", 20_000)), (b'Z', b"I")]),
        Transcript { trouble: Some("closed".to_owned()), ..one.clone() },
    ] {
        assert!(difference(&one, &other).is_some(), "{other:?}");
    }
}
