//! The customers themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::Customers;
use super::opening::{NotOpened, by_connect, by_socks};
use super::record::Record;

/// A customer's patience, for an answer and for a new stream.
const PATIENCE: Duration = Duration::from_secs(10);
/// A held stream speaks this often.
const SPEAK_EVERY: Duration = Duration::from_millis(100);
/// Rest before a stream is opened again.
const REST: Duration = Duration::from_secs(1);
/// The most that is said at once, bytes.
const LONGEST: usize = 2_000;
/// New streams under way at once, at one proxy.
const MOST_OPENING: usize = 64;

/// One customer with a stream that is never silent.
pub(super) struct Held {
    customers: Arc<Customers>,
    number: usize,
    record: Arc<Record>,
    stopped: watch::Receiver<bool>,
}

impl Held {
    pub(super) const fn new(
        customers: Arc<Customers>,
        number: usize,
        record: Arc<Record>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self { customers, number, record, stopped }
    }

    pub(super) async fn run(mut self) {
        while !*self.stopped.borrow() {
            match patient(by_socks(&self.customers)).await {
                Ok(stream) => {
                    self.record.held(1);
                    let ended = self.speak(stream).await;
                    self.record.held(-1);
                    if let Err(cause) = ended {
                        self.record.broke(cause);
                    }
                }
                Err(refusal) => self.record.refused_one(refusal, true),
            }
            let mut stopped = self.stopped.clone();
            tokio::select! {
                () = sleep(REST) => {}
                _ = stopped.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Speaks and hears until it is told to stop; else why it ended.
    async fn speak(&mut self, mut stream: TcpStream) -> Result<(), String> {
        let mut said = vec![0; LONGEST];
        let mut heard = vec![0; LONGEST];
        let mut turn = self.number;
        while !*self.stopped.borrow() {
            let length = 1 + fastrand::usize(..LONGEST);
            turn = turn.wrapping_add(1);
            said[..length].fill(u8::try_from(turn % 256).unwrap_or(0));
            round(&mut stream, &said[..length], &mut heard[..length], &self.record).await?;
            sleep(SPEAK_EVERY).await;
        }
        // Orderly, so that the last bytes are counted everywhere.
        let _ = stream.shutdown().await;
        let _ = timeout(REST, stream.read(&mut heard)).await;
        Ok(())
    }
}

/// Opens a stream again and again: one round, and it ends.
pub(super) async fn open_again(
    customers: Arc<Customers>,
    every: Duration,
    record: Arc<Record>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut under_way = JoinSet::new();
    let mut clock = tokio::time::interval(every);
    loop {
        tokio::select! {
            _ = clock.tick() => {
                while under_way.try_join_next().is_some() {}
                if under_way.len() < MOST_OPENING {
                    under_way.spawn(once(Arc::clone(&customers), Arc::clone(&record)));
                }
            }
            _ = stopped.wait_for(|stop| *stop) => break,
        }
    }
    while under_way.join_next().await.is_some() {}
}

async fn once(customers: Arc<Customers>, record: Arc<Record>) {
    match patient(by_connect(&customers)).await {
        Ok(mut stream) => {
            let said = [b'?'; 64];
            match round(&mut stream, &said, &mut [0; 64], &record).await {
                Ok(()) => record.opened(),
                Err(cause) => record.broke(cause),
            }
            let _ = stream.shutdown().await;
            let _ = timeout(REST, stream.read(&mut [0; 1])).await;
        }
        Err(refusal) => record.refused_one(refusal, false),
    }
}

/// Says something and hears it again.
async fn round(stream: &mut TcpStream, said: &[u8], heard: &mut [u8], record: &Record) -> Result<(), String> {
    let began = Instant::now();
    let exchange = async {
        stream.write_all(said).await?;
        record.sent(said.len());
        stream.read_exact(heard).await
    };
    match timeout(PATIENCE, exchange).await {
        Err(_) => return Err("no answer in time".to_owned()),
        Ok(Err(error)) => return Err(format!("io: {}", error.kind())),
        Ok(Ok(_)) => {}
    }
    record.heard(heard.len(), began.elapsed());
    if said == heard { Ok(()) } else { Err("other bytes came back".to_owned()) }
}

async fn patient(
    opening: impl Future<Output = Result<TcpStream, NotOpened>>,
) -> Result<TcpStream, NotOpened> {
    let none = || NotOpened { cause: "no answer in time".to_owned(), retry_after_s: None };
    timeout(PATIENCE, opening).await.unwrap_or_else(|_| Err(none()))
}
