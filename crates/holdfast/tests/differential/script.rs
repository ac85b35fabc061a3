//! What one client does in its life.

use std::fmt;

use crate::step::Step;

/// A client's life, the same against PostgreSQL and against the pooler.
#[derive(Clone)]
pub(crate) struct Script {
    /// Further start-up parameters.
    pub(crate) parameters: Vec<(String, String)>,
    /// What is sent without waiting, one after the other; the answer is awaited after each.
    pub(crate) turns: Vec<Turn>,
    /// How it leaves.
    pub(crate) ending: Ending,
}

/// Messages that are sent without waiting for an answer.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) steps: Vec<Step>,
    /// Where the bytes are cut into writes.
    pub(crate) cuts: Vec<usize>,
}

/// How a client leaves.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// Asks something last, whose answer shows that nothing is owed any more, and says goodbye.
    InStep,
    /// Sends so many bytes of one more turn, and is gone.
    Death { turn: Turn, bytes: usize, way: Way },
}

/// How a client's connection ends without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Reset,
    End,
    Terminate,
}

impl Script {
    /// The same with the client's own number.
    pub(crate) fn numbered(&self, number: u64) -> Self {
        let turn = |turn: &Turn| Turn {
            steps: turn.steps.iter().map(|step| step.numbered(number)).collect(),
            cuts: turn.cuts.clone(),
        };
        let ending = match &self.ending {
            Ending::InStep => Ending::InStep,
            Ending::Death { turn: last, bytes, way } => {
                Ending::Death { turn: turn(last), bytes: *bytes, way: *way }
            }
        };
        Self { parameters: self.parameters.clone(), turns: self.turns.iter().map(turn).collect(), ending }
    }
}

impl Turn {
    pub(crate) fn new(steps: Vec<Step>) -> Self {
        Self { steps, cuts: Vec::new() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.steps.iter().flat_map(Step::bytes).collect()
    }

    /// The bytes as they are written.
    pub(crate) fn pieces(&self) -> Vec<Vec<u8>> {
        let bytes = self.bytes();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in self.cuts.iter().copied().chain([bytes.len()]) {
            let cut = cut.clamp(from, bytes.len());
            if cut > from {
                pieces.push(bytes[from..cut].to_vec());
                from = cut;
            }
        }
        pieces
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(formatter, "\n    > {step:?}")?;
        }
        if !self.cuts.is_empty() {
            write!(formatter, "\n      (cut at {:?})", self.cuts)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "  start-up {:?}", self.parameters)?;
        for (number, turn) in self.turns.iter().enumerate() {
            write!(formatter, "\n  turn {number}{turn:?}")?;
        }
        match &self.ending {
            Ending::InStep => write!(formatter, "\n  then goodbye"),
            Ending::Death { turn, bytes, way } => {
                write!(formatter, "\n  then {way:?} after {bytes} bytes of{turn:?}")
            }
        }
    }
}
