use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn frames_come_back_whole_wherever_they_are_cut(payloads in prop::collection::vec((0..Kind::ALL.len(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..300)), 0..8)) {
        let mut bytes = Vec::new();
        for (kind, stream, payload) in &payloads {
            write_frame(&mut bytes, Kind::ALL[*kind], *stream, |out| out.extend_from_slice(payload));
        }
        let mut at = 0;
        for (kind, stream, payload) in &payloads {
            let end = at + HEADER_BYTES + payload.len();
            for cut in at..end {
                prop_assert_eq!(Frame::parse(&bytes[at..cut]), Ok(None));
            }
            let frame = Frame::parse(&bytes[at..]).unwrap().unwrap();
            prop_assert_eq!(frame.header, Header { length: payload.len(), kind: Some(Kind::ALL[*kind]), stream: *stream });
            prop_assert_eq!(frame.payload, &payload[..]);
            at = end;
        }
    }
}

#[test]
fn a_payload_longer_than_any_is_refused_by_its_header_alone() {
    let [high, low] = 16_377_u16.to_be_bytes();
    assert_eq!(Header::parse(&[high, low, 0x12, 0, 0, 0, 0, 1]), Err(BadHeader::TooLong(16_377)));
    let [high, low] = 16_376_u16.to_be_bytes();
    assert!(Header::parse(&[high, low, 0x12, 0, 0, 0, 0, 1]).is_ok());
}

#[test]
fn what_tomorrow_adds_is_skipped_only_where_it_says_so() {
    assert_eq!(Header::parse(&[0, 0, 0x7f, 0, 0, 0, 0, 1]), Err(BadHeader::UnknownKind(0x7f)));
    let skipped = Header::parse(&[0, 3, 0x80, 0, 0, 0, 0, 1]).unwrap().unwrap();
    assert_eq!((skipped.kind, skipped.length), (None, 3));
}

#[test]
fn the_longest_frame_fills_one_record_of_tls() {
    assert_eq!(MAX_FRAME_BYTES, 16 * 1024);
}
