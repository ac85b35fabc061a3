//! Against the parser of the crate that carries the commands, over generated and arbitrary bytes.

use proptest::prelude::*;
use redis::parse_redis_value;

use super::*;

fn texts(items: &[&str]) -> Frame {
    Frame::Push(items.iter().map(|item| item.as_bytes().to_vec()).collect())
}

#[test]
fn a_move_of_a_slot_a_hint_and_an_error_are_heard_as_they_are_sent() {
    let unasked = b">3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n:1\r\n";
    assert_eq!(decode(unasked), Ok(Some((texts(&["sunsubscribe", "c", ""]), unasked.len() - 4))));
    let hint = b">3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$0\r\n\r\n";
    assert_eq!(decode(hint), Ok(Some((texts(&["smessage", "c", ""]), hint.len()))));
    let moved = b"-MOVED 1 127.0.0.1:7001\r\n";
    assert_eq!(decode(moved), Ok(Some((Frame::Error("MOVED 1 127.0.0.1:7001".to_owned()), moved.len()))));
    assert_eq!(decode(b"|1\r\n+a\r\n:1\r\n+OK\r\n"), Ok(Some((Frame::Other, 17))));
}

#[test]
fn bounds_hold_and_lengths_that_lie_cost_nothing() {
    assert!(decode(format!("${}\r\n", MAX_FRAME_BYTES + 1).as_bytes()).is_err());
    assert!(decode(b">9999999999\r\n").is_err());
    assert_eq!(decode(format!(">{MAX_FRAME_BYTES}\r\n").as_bytes()), Ok(None));
    assert!(decode(&vec![b'+'; MAX_FRAME_BYTES]).is_err(), "a line without an end");
    assert!(decode(&b"*1\r\n".repeat(MAX_DEPTH + 2)).is_err());
    assert_eq!(decode(&b"*1\r\n".repeat(MAX_DEPTH)), Ok(None));
    assert!(decode(b"$1\r\nab\r\n").is_err());
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let line = "[a-zA-Z0-9 ]{0,12}";
    let leaf = prop_oneof![
        line.prop_map(|text| format!("+{text}\r\n").into_bytes()),
        line.prop_map(|text| format!("-ERR {text}\r\n").into_bytes()),
        any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| { [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat() }),
        Just(b"_\r\n".to_vec()),
        Just(b"$-1\r\n".to_vec()),
        Just(b"#t\r\n".to_vec()),
        Just(b",1.5\r\n".to_vec()),
    ];
    let inner = leaf.prop_recursive(3, 24, 4, |element| {
        (prop_oneof![Just('*'), Just('~'), Just('%')], proptest::collection::vec(element, 0..4)).prop_map(
            |(kind, mut items)| {
                if kind == '%' && items.len() % 2 == 1 {
                    items.pop();
                }
                let count = if kind == '%' { items.len() / 2 } else { items.len() };
                [format!("{kind}{count}\r\n").into_bytes(), items.concat()].concat()
            },
        )
    });
    let push = proptest::collection::vec(inner.clone(), 0..3).prop_map(|items| {
        [format!(">{}\r\n+kind\r\n", items.len() + 1).into_bytes(), items.concat()].concat()
    });
    prop_oneof![inner, push]
}

proptest! {
    #[test]
    fn what_the_other_parser_reads_is_read_to_the_same_end(first in value(), next in value()) {
        prop_assert!(parse_redis_value(&first).is_ok());
        let both = [first.clone(), next].concat();
        let (frame, length) = decode(&both).unwrap().unwrap();
        prop_assert_eq!(length, first.len());
        prop_assert_eq!(matches!(frame, Frame::Push(_)), first[0] == b'>');
        prop_assert_eq!(matches!(frame, Frame::Error(_)), first[0] == b'-');
        for end in 0..first.len() {
            prop_assert_eq!(decode(&first[..end]), Ok(None), "cut at {}", end);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_a_frame_lies_within_them(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'*'), Just(b'>'), Just(b'$'), any::<u8>()], 0..200)
    ) {
        if let Ok(Some((_, length))) = decode(&bytes) {
            prop_assert!(length <= bytes.len() && length > 0);
        }
    }
}

proptest! {
    #[test]
    fn the_fuzz_target_holds_for_generated_values(first in value(), more in proptest::collection::vec(any::<u8>(), 0..20)) {
        crate::fuzz::frames(&[first, more].concat());
    }
}
