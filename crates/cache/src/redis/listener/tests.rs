//! Frames of a stream that arrives in pieces.

use tokio::io::duplex;

use super::*;

#[tokio::test]
async fn frames_are_whole_however_they_arrive_and_an_end_inside_one_is_a_loss() {
    let (mut server, mut client) = duplex(1_024);
    let bytes = b">3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$0\r\n\r\n-MOVED 1 b:2\r\n+O";
    for byte in bytes {
        server.write_all(&[*byte]).await.unwrap();
    }
    drop(server);
    let mut buffer = Vec::new();
    let push = next_frame(&mut client, &mut buffer).await.unwrap();
    assert!(matches!(push, Frame::Push(parts) if parts[0] == b"smessage"));
    assert_eq!(next_frame(&mut client, &mut buffer).await.unwrap(), Frame::Error("MOVED 1 b:2".to_owned()));
    assert!(matches!(next_frame(&mut client, &mut buffer).await, Err(Loss::Io(_))));
}
