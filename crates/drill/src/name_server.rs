//! A DNS server for tests, which answers as it is told: late, never, or differently each time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const HEADER_BYTES: usize = 12;
/// Questions that are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// How soon the thread notices that it has to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What to say to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// These addresses, as far as they are of the family asked for, to be kept for so many seconds.
    Addresses(Vec<IpAddr>, u32),
    /// There is no such name.
    NoSuchName,
    /// The server cannot say.
    Failure,
    /// Nothing.
    Silence,
}

/// A question as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name in lower case, without a dot at its end.
    pub name: String,
    /// Whether IPv6 addresses are asked for; else IPv4.
    pub ipv6: bool,
    /// How many questions for this name and family came before.
    pub before: usize,
}

/// The server; it ends with its owner.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Question>>>,
    dropped: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// Starts one on a port of 127.0.0.1 that gives what `reply` says.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(reply: impl Fn(&Question) -> Reply + Send + 'static) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for a name server")?;
        socket.set_read_timeout(Some(LOOK_AGAIN)).context("cannot set a time limit")?;
        let address = socket.local_addr().context("no address of its own")?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (stop, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = std::thread::spawn({
            let (asked, stop, dropped) = (Arc::clone(&asked), Arc::clone(&stop), Arc::clone(&dropped));
            move || serve(&socket, &reply, &asked, &stop, &dropped)
        });
        Ok(Self { address, asked, dropped, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has been asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Packets that were no question it knows.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn serve(
    socket: &UdpSocket,
    reply: &impl Fn(&Question) -> Reply,
    asked: &Mutex<Vec<Question>>,
    stop: &AtomicBool,
    dropped: &AtomicUsize,
) {
    let mut packet = [0; 1_500];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
        let Some((mut question, end)) = read(&packet[..length]) else {
            dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            let same = |old: &&Question| old.name == question.name && old.ipv6 == question.ipv6;
            question.before = asked.iter().filter(same).count();
            if asked.len() < REMEMBERED_MAX {
                asked.push(question.clone());
            }
        }
        if let Some(answer) = write(&packet[..end], question.ipv6, &reply(&question)) {
            drop(socket.send_to(&answer, from));
        }
    }
}

/// The question of a packet, and where it ends.
fn read(packet: &[u8]) -> Option<(Question, usize)> {
    let mut at = HEADER_BYTES;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*packet.get(at)?);
        if length == 0 {
            break;
        }
        let label = packet.get(at + 1..at + 1 + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + length;
    }
    let kind = u16::from_be_bytes([*packet.get(at + 1)?, *packet.get(at + 2)?]);
    let ipv6 = match kind {
        TYPE_A => false,
        TYPE_AAAA => true,
        _ => return None,
    };
    packet.get(at + 4)?;
    Some((Question { name: labels.join("."), ipv6, before: 0 }, at + 5))
}

/// The answer: the question again, and behind it the records, each of which names it by a pointer (RFC 1035 §4.1).
fn write(question: &[u8], ipv6: bool, reply: &Reply) -> Option<Vec<u8>> {
    let (addresses, keep_s, code) = match reply {
        Reply::Addresses(addresses, keep_s) => (addresses.as_slice(), *keep_s, 0),
        Reply::Failure => (&[][..], 0, 2),
        Reply::NoSuchName => (&[][..], 0, 3),
        Reply::Silence => return None,
    };
    let fitting = addresses.iter().filter(|address| address.is_ipv6() == ipv6);
    let mut out = question.to_vec();
    out[2] = 0x81;
    out[3] = 0x80 | code;
    out[4..HEADER_BYTES].copy_from_slice(&[0, 1, 0, u8::try_from(fitting.clone().count()).ok()?, 0, 0, 0, 0]);
    for address in fitting {
        let (kind, bytes) = match address {
            IpAddr::V4(address) => (TYPE_A, address.octets().to_vec()),
            IpAddr::V6(address) => (TYPE_AAAA, address.octets().to_vec()),
        };
        out.extend_from_slice(&[0xc0, 0x0c]);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&[0, 1]);
        out.extend_from_slice(&keep_s.to_be_bytes());
        out.extend_from_slice(&u16::try_from(bytes.len()).ok()?.to_be_bytes());
        out.extend_from_slice(&bytes);
    }
    Some(out)
}
