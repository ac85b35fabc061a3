//! The transport of the simulation: takes down what the engine asks for.

use super::random::Random;
use pgwire::scram::ChannelBinding;
use pooling::connection::{ClientId, ConnectionId};
use pooling::seam::{
    BudgetRequest, CancelQuery, ConsoleLogin, DeriveVerifier, Flow, LookAtLocks, OpenServer, Transport,
};
use std::collections::{HashMap, HashSet};

#[derive(Debug)]
pub struct Wire {
    pub random: Random,
    /// Bytes on their way to a peer.
    pub sent: HashMap<ConnectionId, Vec<u8>>,
    /// Peers that take nothing at present, and what is kept for them.
    pub stopped: HashSet<ConnectionId>,
    pub kept: HashMap<ConnectionId, Vec<u8>>,
    pub not_reading: HashSet<ConnectionId>,
    pub shut: HashSet<ConnectionId>,
    pub closed: Vec<ConnectionId>,
    pub opens: Vec<OpenServer>,
    pub cancels: Vec<CancelQuery>,
    pub budgets: Vec<BudgetRequest>,
    pub derives: Vec<DeriveVerifier>,
    pub looks: Vec<LookAtLocks>,
}

impl Wire {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed ^ 0x5eed),
            sent: HashMap::new(),
            stopped: HashSet::new(),
            kept: HashMap::new(),
            not_reading: HashSet::new(),
            shut: HashSet::new(),
            closed: Vec::new(),
            opens: Vec::new(),
            cancels: Vec::new(),
            budgets: Vec::new(),
            derives: Vec::new(),
            looks: Vec::new(),
        }
    }
}

impl Transport for Wire {
    fn send(&mut self, to: ConnectionId, parts: &[&[u8]]) -> Flow {
        assert!(!self.shut.contains(&to), "sent to {to:?} after its write side was shut down");
        let bytes: Vec<u8> = parts.concat();
        if self.stopped.contains(&to) || self.kept.contains_key(&to) {
            self.kept.entry(to).or_default().extend(bytes);
            return Flow::Blocked;
        }
        self.sent.entry(to).or_default().extend(bytes);
        Flow::Flushed
    }

    fn set_reading(&mut self, of: ConnectionId, on: bool) {
        if on {
            self.not_reading.remove(&of);
        } else {
            self.not_reading.insert(of);
        }
    }

    fn shut_down_write(&mut self, of: ConnectionId) {
        self.shut.insert(of);
    }

    fn close(&mut self, of: ConnectionId) {
        if let Some(kept) = self.kept.remove(&of) {
            self.sent.entry(of).or_default().extend(kept);
        }
        self.closed.push(of);
    }

    fn random(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.next().to_le_bytes());
        }
        bytes
    }

    fn open_server(&mut self, request: OpenServer) {
        self.opens.push(request);
    }

    fn cancel_query(&mut self, request: CancelQuery) {
        self.cancels.push(request);
    }

    fn look_at_locks(&mut self, request: LookAtLocks) {
        self.looks.push(request);
    }

    fn ask_budget(&mut self, request: BudgetRequest) {
        self.budgets.push(request);
    }

    fn derive_verifier(&mut self, request: DeriveVerifier) {
        self.derives.push(request);
    }

    fn start_tls(&mut self, _client: ClientId, _begun: &[u8]) {
        panic!("TLS is not offered");
    }

    fn channel_binding(&mut self, _client: ClientId) -> Option<ChannelBinding> {
        None
    }

    fn describe_tls(&mut self, _client: ClientId) -> String {
        String::new()
    }

    fn hand_to_console(&mut self, _client: ClientId, _login: ConsoleLogin) {
        panic!("nobody asks for the console");
    }
}
