//! Makes a script that fails smaller, as long as it fails.

use tokio::time::{Duration, Instant};

use crate::campaign::{Outcome, Sides};
use crate::script::{Script, Turn};

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(40);

/// The smallest script found, and how it fails; nothing if it does not when it runs alone.
pub(crate) async fn shrink(sides: &Sides, script: &Script) -> (Script, Option<String>) {
    let mut smallest = script.clone();
    let Outcome::Differs(mut told) = sides.play(script).await else { return (smallest, None) };
    if std::env::var_os("AS_IT_IS").is_some() {
        return (smallest, Some(told));
    }
    let end = Instant::now() + LIMIT;
    loop {
        let mut smaller = None;
        for candidate in candidates(&smallest) {
            if Instant::now() > end {
                return (smallest, Some(told));
            }
            if let Outcome::Differs(difference) = sides.play(&candidate).await {
                smaller = Some((candidate, difference));
                break;
            }
        }
        match smaller {
            Some((candidate, difference)) => (smallest, told) = (candidate, difference),
            None => return (smallest, Some(told)),
        }
    }
}

/// Without a turn, without a message, in one piece, without parameters.
fn candidates(script: &Script) -> Vec<Script> {
    let mut all = Vec::new();
    for gone in (0..script.turns.len()).rev() {
        let mut smaller = script.clone();
        smaller.turns.remove(gone);
        all.push(smaller);
    }
    for (number, turn) in script.turns.iter().enumerate() {
        for gone in 0..turn.steps.len() {
            let mut steps = turn.steps.clone();
            steps.remove(gone);
            let mut smaller = script.clone();
            smaller.turns[number] = Turn { steps, cuts: turn.cuts.clone() };
            all.push(smaller);
        }
        if !turn.cuts.is_empty() {
            let mut smaller = script.clone();
            smaller.turns[number].cuts.clear();
            all.push(smaller);
        }
    }
    if !script.parameters.is_empty() {
        all.push(Script { parameters: Vec::new(), ..script.clone() });
    }
    all
}
