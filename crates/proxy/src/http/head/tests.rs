use super::*;

fn head(text: &str) -> Result<Option<(Head<'_>, usize)>, HeadError> {
    Head::parse(text.as_bytes())
}

#[test]
fn a_head_ends_at_the_empty_line() {
    assert_eq!(head("GET / HTTP/1.1\r\nHost: x\r\n"), Ok(None));
    let (head, length) = head("GET / HTTP/1.1\r\nHost:  x \r\nA: 1, 2\r\na: 3\r\n\r\nbody").unwrap().unwrap();
    assert_eq!((head.first_line, length), ("GET / HTTP/1.1", 44));
    assert_eq!(head.values("host").collect::<Vec<_>>(), [b"x"]);
    assert_eq!(head.words("A").collect::<Vec<_>>(), [b"1", b"2", b"3"]);
}

#[test]
fn what_two_readers_could_read_in_two_ways_is_refused() {
    for bad in [
        "GET / HTTP/1.1\r\nA : x\r\n\r\n",
        "GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        "GET / HTTP/1.1\r\nA: x\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nA: x\nB: y\r\n\r\n",
        "GET / HTTP/1.1\r\nA: x\ry\r\n\r\n",
        "GET / HTTP/1.1\r\nA: x\0\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
    ] {
        assert_eq!(head(bad), Err(HeadError::Header), "{bad:?}");
    }
    assert_eq!(head("GET\n/ HTTP/1.1\r\n\r\n"), Err(HeadError::FirstLine));
    assert_eq!(head("\r\n\r\n"), Err(HeadError::FirstLine));
}

#[test]
fn a_head_has_a_bound() {
    let of = |length: usize| {
        let start = "GET / HTTP/1.1\r\nA: ";
        format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
    };
    assert!(matches!(head(&of(MAX_HEAD_BYTES)), Ok(Some((_, MAX_HEAD_BYTES)))));
    assert_eq!(head(&of(MAX_HEAD_BYTES + 1)), Err(HeadError::TooLong));
    assert_eq!(head(&"x".repeat(MAX_HEAD_BYTES)), Err(HeadError::TooLong), "it need not end");
    let many = |count| format!("GET / HTTP/1.1\r\n{}\r\n", "A: x\r\n".repeat(count));
    assert!(head(&many(MAX_HEADERS)).is_ok());
    assert_eq!(head(&many(MAX_HEADERS + 1)), Err(HeadError::TooManyHeaders));
}

#[test]
fn a_length_is_clear_or_refused() {
    let length = |text: &str| {
        let text = format!("X\r\n{text}\r\n");
        Head::parse(text.as_bytes()).unwrap().unwrap().0.content_length()
    };
    assert_eq!(length("Content-Length: 12\r\n"), Ok(Some(12)));
    for bad in ["+1", "-1", "1,1", "0x1", "", "1 1", "99999999999999999999"] {
        assert_eq!(length(&format!("Content-Length: {bad}\r\n")), Err(HeadError::Length), "{bad}");
    }
    assert_eq!(length("Content-Length: 1\r\nContent-Length: 1\r\n"), Err(HeadError::Length));
}
