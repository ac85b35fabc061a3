//! Function calls of the protocol ("fastpath"), by which drivers work with large objects.

use drill::wire::{Connection, frame};

use crate::support::{House, PATIENCE, value, within};
use crate::twins::Twins;

const LO_CREATE: u32 = 715;
const LO_OPEN: u32 = 952;
const LO_CLOSE: u32 = 953;
const LO_READ: u32 = 954;
const LO_WRITE: u32 = 955;
const LO_SEEK: u32 = 956;
const LO_UNLINK: u32 = 964;
/// INV_READ and INV_WRITE.
const READ_AND_WRITE: i32 = 0x0006_0000;

/// Large objects hung, since function calls were not passed on.
/// pg_doorman 3.10.7
#[tokio::test(flavor = "multi_thread")]
async fn large_objects_are_written_and_read_by_function_calls() {
    const SIZE: usize = 10 << 20;
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let content: Vec<u8> = (0..SIZE).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect();
    let mut client = house.client().await;
    // One object in one call, one in many.
    for (object, piece) in [(7001, SIZE), (7002, 64 << 10)] {
        value(&mut client, "begin").await;
        assert_eq!(call_number(&mut client, LO_CREATE, &[object]).await, object);
        let handle = call_number(&mut client, LO_OPEN, &[object, READ_AND_WRITE]).await;
        for part in content.chunks(piece) {
            let written = call(&mut client, LO_WRITE, &[number(handle), part.to_vec()]).await;
            assert_eq!(written, number(i32::try_from(part.len()).unwrap()));
        }
        assert_eq!(call_number(&mut client, LO_SEEK, &[handle, 0, 0]).await, 0);
        let mut read = Vec::new();
        while read.len() < SIZE {
            let size = i32::try_from(piece).unwrap();
            read.extend(call(&mut client, LO_READ, &[number(handle), number(size)]).await);
        }
        assert!(read == content, "the object has changed on its way");
        assert_eq!(call_number(&mut client, LO_CLOSE, &[handle]).await, 0);
        value(&mut client, "commit").await;
        assert_eq!(call_number(&mut client, LO_UNLINK, &[object]).await, 1);
    }
}

/// Function calls answer as PostgreSQL does, also when they fail, in a failed transaction and in a pipeline.
/// pg_doorman 3.10.7
#[tokio::test(flavor = "multi_thread")]
async fn function_calls_fail_as_they_do_in_postgresql() {
    const DIVIDE: u32 = 154;
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut twins = Twins::connect(&house).await;
    let divide = |one: i32, other: i32| {
        frame::function_call(DIVIDE, &[1], &[Some(number(one)), Some(number(other))], 1)
    };
    twins.ask(&[divide(42, 2)], "VZ").await;
    twins.ask(&[divide(42, 0)], "EZ").await;
    twins.ask(&[frame::function_call(999_999, &[1], &[Some(number(1))], 1)], "EZ").await;
    twins.ask(&[divide(6, 2), divide(6, 0), divide(6, 3), frame::query("select 1")], "VZEZVZTDCZ").await;
    twins.ask(&[frame::query("begin"), divide(1, 0)], "CZEZ").await;
    twins.ask(&[divide(1, 1)], "EZ").await;
    twins.ask(&[frame::query("rollback")], "CZ").await;
    // Behind a failed message of a batch, it is skipped.
    twins.ask(&[frame::parse("", "selec"), divide(1, 1), frame::sync()], "EZ").await;
    twins.assert_silent().await;
}

async fn call_number(client: &mut Connection, function: u32, arguments: &[i32]) -> i32 {
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| number(*argument)).collect();
    let result = call(client, function, &arguments).await;
    i32::from_be_bytes(result.try_into().unwrap())
}

/// The result of a function, all in binary.
async fn call(client: &mut Connection, function: u32, arguments: &[Vec<u8>]) -> Vec<u8> {
    let arguments: Vec<Option<Vec<u8>>> = arguments.iter().cloned().map(Some).collect();
    client.send(&frame::function_call(function, &[1], &arguments, 1)).await.unwrap();
    let answer = within(PATIENCE, "a result", client.read_message()).await.unwrap();
    assert_eq!(answer.kind, b'V', "{answer:?}");
    let ready = within(PATIENCE, "the end", client.read_message()).await.unwrap();
    assert_eq!(ready.kind, b'Z', "{ready:?}");
    // Its length goes ahead.
    answer.body[4..].to_vec()
}

fn number(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}
