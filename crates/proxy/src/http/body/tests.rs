use super::*;

fn chunked(text: &str) -> Result<(usize, bool), BodyError> {
    let mut body = Body::CHUNKED;
    body.take(text.as_bytes()).map(|taken| (taken, body.is_done()))
}

#[test]
fn a_body_ends_where_its_length_says() {
    let mut body = Body::Length(5);
    assert_eq!((body.take(b"abc"), body.is_done()), (Ok(3), false));
    assert_eq!((body.take(b"defgh"), body.is_done()), (Ok(2), true));
    assert_eq!(body.take(b"more"), Ok(0));
    let mut body = Body::UntilClose;
    assert_eq!((body.take(b"abc"), body.is_done()), (Ok(3), false));
}

#[test]
fn chunks_end_at_the_empty_line_behind_the_last() {
    assert_eq!(chunked("0\r\n\r\nnext"), Ok((5, true)));
    assert_eq!(chunked("3\r\nabc\r\n0\r\n\r\nnext"), Ok((13, true)));
    assert_eq!(chunked("A;name=value\r\n0123456789\r\n00\r\nTrailer: x\r\n\r\nnext"), Ok((44, true)));
    assert_eq!(chunked("3\r\nabc\r\n0\r\n"), Ok((11, false)));
}

#[test]
fn chunks_that_are_none_are_refused() {
    for bad in
        ["\r\n", "g\r\n", "+3\r\n", "3\nabc", "3;x\nabc", "10000000000000000\r\n", "00000000000000001\r\n"]
    {
        assert_eq!(chunked(bad), Err(BodyError::ChunkLength), "{bad:?}");
    }
    for bad in ["3\r\nabcd\r\n", "3\r\nabc\n", "3\r\rabc", "0\r\nTrailer\n", "0\r\n\r\r"] {
        assert_eq!(chunked(bad), Err(BodyError::ChunkEnd), "{bad:?}");
    }
}

#[test]
fn lines_of_a_chunked_body_have_a_bound() {
    let extension = |length| format!("1;{}\r\n", "x".repeat(length));
    assert!(chunked(&extension(MAX_CHUNK_LINE_BYTES as usize - 1)).is_ok());
    assert_eq!(chunked(&extension(MAX_CHUNK_LINE_BYTES as usize)), Err(BodyError::LineTooLong));
    let trailers = "0\r\n".to_owned() + &"A: x\r\n".repeat(MAX_TRAILER_BYTES as usize);
    assert_eq!(chunked(&trailers), Err(BodyError::LineTooLong));
}
