//! What both sides have said, side by side. Everything is compared byte for byte but for what is listed here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use drill::wire::Message;

/// Objects below this OID are the same in every new database.
const FIRST_OWN_OID: u32 = 16_384;

/// Messages shown before the first difference.
const SHOWN_BEFORE: usize = 12;

/// What came back: one list of messages for the login and for each turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) parts: Vec<Vec<Message>>,
    /// Why it ended early.
    pub(crate) trouble: Option<String>,
}

/// Tells where the two differ, if they do.
pub(crate) fn difference(direct: &Transcript, pooled: &Transcript) -> Option<String> {
    let (direct_seen, pooled_seen) = (comparable(direct), comparable(pooled));
    let (direct_same, same) = same_up_to(&direct_seen, &pooled_seen);
    if direct_same == direct_seen.len() && same == pooled_seen.len() && pooled.trouble.is_none() {
        return None;
    }
    let mut told = format!("first difference at message {same}");
    for (number, message) in pooled_seen.iter().enumerate().take(same).skip(same.saturating_sub(SHOWN_BEFORE))
    {
        let _ = write!(told, "\n  both {number}: {}", short(message));
    }
    for (who, seen, same) in [("PostgreSQL", &direct_seen, direct_same), ("holdfast", &pooled_seen, same)] {
        for (number, message) in seen.iter().enumerate().skip(same).take(6) {
            let _ = write!(told, "\n  {who} {number}: {}", short(message));
        }
    }
    if let Some(trouble) = &pooled.trouble {
        let _ = write!(told, "\n  holdfast ended: {trouble}");
    }
    Some(told)
}

/// How many messages of each are the same. In a failed transaction nothing can be prepared, so a server that lacks a
/// statement can only say that (25P02), where one that has it would look at the parameters first, or describe it if it has
/// no columns: the answer to that batch is not compared.
fn same_up_to(direct: &[Message], pooled: &[Message]) -> (usize, usize) {
    let (mut at_direct, mut at_pooled) = (0, 0);
    while let (Some(one), Some(other)) = (direct.get(at_direct), pooled.get(at_pooled)) {
        if one == other {
            at_direct += 1;
            at_pooled += 1;
            continue;
        }
        let says_failed =
            other.kind == b'E' && other.body.split(|byte| *byte == 0).any(|field| field == b"C25P02");
        let end = |seen: &[Message], at: usize| {
            let ready = at + seen[at..].iter().position(|message| message.kind == b'Z')?;
            (seen[ready].body == b"E").then_some(ready)
        };
        match (end(direct, at_direct), end(pooled, at_pooled)) {
            (Some(direct_end), Some(pooled_end)) if says_failed => {
                (at_direct, at_pooled) = (direct_end, pooled_end);
            }
            _ => break,
        }
    }
    (at_direct, at_pooled)
}

fn short(message: &Message) -> String {
    let text = format!("{message:?}");
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], message.body.len()),
        None => text,
    }
}

/// All messages, with what may differ made equal.
fn comparable(transcript: &Transcript) -> Vec<Message> {
    let mut oids = BTreeMap::new();
    let mut all = Vec::new();
    for (number, part) in transcript.parts.iter().enumerate() {
        let mut part: Vec<Message> = part.iter().map(|message| neutral(message, &mut oids)).collect();
        if number == 0 {
            // The parameters of a login come in no order that the protocol would promise.
            part.sort_by(|one, other| (one.kind == b'Z', &one.body).cmp(&(other.kind == b'Z', &other.body)));
        }
        all.extend(part);
    }
    all
}

fn neutral(message: &Message, oids: &mut BTreeMap<u32, u32>) -> Message {
    let mut message = message.clone();
    match message.kind {
        // BackendKeyData: process id and secret are each side's own.
        b'K' => message.body.clear(),
        // NotificationResponse: the process id of who notified.
        b'A' => message.body.splice(..4, [0; 4]).for_each(drop),
        b'T' => number_tables(&mut message.body, oids),
        b'E' => hide_who_noticed(&mut message.body),
        _ => {}
    }
    message
}

/// In a failed transaction a Bind or Describe fails as a Parse does. If the server lacks the statement, it is the Parse
/// that the pooler sends ahead which fails: the text is the same, the function and line of the source are not.
fn hide_who_noticed(body: &mut Vec<u8>) {
    let fields: Vec<&[u8]> = body.split(|byte| *byte == 0).collect();
    if fields.contains(&&b"C25P02"[..]) {
        let kept: Vec<&[u8]> =
            fields.iter().copied().filter(|field| !matches!(field.first(), Some(b'L' | b'R'))).collect();
        *body = kept.join(&0);
    }
}

/// RowDescription holds the OIDs of tables, and each side has tables of its own: each OID is replaced by when it was
/// first seen.
fn number_tables(body: &mut [u8], oids: &mut BTreeMap<u32, u32>) {
    let count = body.first_chunk().map_or(0, |count| u16::from_be_bytes(*count));
    let mut from = 2;
    for _ in 0..count {
        let Some(end) = body.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) else {
            return;
        };
        from += end + 1;
        let Some(table) = body.get_mut(from..).and_then(|rest| rest.first_chunk_mut()) else { return };
        let oid = u32::from_be_bytes(*table);
        if oid >= FIRST_OWN_OID {
            let next = FIRST_OWN_OID + u32::try_from(oids.len()).unwrap_or(0);
            *table = oids.entry(oid).or_insert(next).to_be_bytes();
        }
        from += 18;
    }
}
