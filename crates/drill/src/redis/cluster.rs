//! A Cluster of primaries, made by hand, and the moving of its slots.

use anyhow::Context as _;

use super::{PrivateRedis, RedisKind, until};
use crate::port::PortLease;

/// Slots of a Cluster.
const SLOTS: usize = 16_384;

/// Keys that one step of a migration carries.
const MIGRATE_AT_ONCE: usize = 100;

/// A node that others do not hear for so long is given up by them, ms.
const NODE_LIMIT_MS: &str = "2000";

/// Several primaries that share the slots evenly. A node that is down takes only its own slots with it.
#[derive(Debug)]
pub struct RedisCluster {
    kind: RedisKind,
    nodes: Vec<PrivateRedis>,
    /// As the Cluster names them.
    names: Vec<String>,
    bus_ports: Vec<PortLease>,
}

impl RedisCluster {
    /// Starts `count` nodes and joins them.
    ///
    /// # Errors
    /// They do not come up, or do not agree in time.
    pub fn start(kind: RedisKind, count: usize) -> anyhow::Result<Self> {
        let mut nodes = Vec::new();
        let mut bus_ports = Vec::new();
        for _ in 0..count {
            let (node, bus) = node(kind)?;
            nodes.push(node);
            bus_ports.push(bus);
        }
        for (index, node) in nodes.iter().enumerate() {
            let (first, last) = (SLOTS * index / count, SLOTS * (index + 1) / count - 1);
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()])?;
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        }
        let (first, bus) = (nodes[0].port().to_string(), bus_ports[0].number().to_string());
        for node in &nodes[1..] {
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &first, &bus])?;
        }
        let names = nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"])).collect::<Result<_, _>>()?;
        let cluster = Self { kind, nodes, names, bus_ports };
        until("the nodes agree", || cluster.nodes.iter().all(|node| cluster.is_whole(node)))?;
        Ok(cluster)
    }

    /// One more node, a replica of another; its number.
    ///
    /// # Errors
    /// It does not come up, or does not follow in time.
    pub fn add_replica(&mut self, of: usize) -> anyhow::Result<usize> {
        let (node, bus) = node(self.kind)?;
        let (first, first_bus) = (self.nodes[0].port().to_string(), self.bus_ports[0].number().to_string());
        node.command(&["CLUSTER", "MEET", "127.0.0.1", &first, &first_bus])?;
        self.names.push(node.command(&["CLUSTER", "MYID"])?);
        self.nodes.push(node);
        self.bus_ports.push(bus);
        until("the nodes agree", || self.nodes.iter().all(|node| self.is_whole(node)))?;
        let number = self.nodes.len() - 1;
        self.follow(number, of)?;
        Ok(number)
    }

    /// Makes a replica one of another node, and waits until it follows.
    ///
    /// # Errors
    /// The node refuses, or does not follow in time.
    pub fn follow(&self, replica: usize, of: usize) -> anyhow::Result<()> {
        let (node, primary) = (&self.nodes[replica], self.nodes[of].port());
        node.command(&["CLUSTER", "REPLICATE", &self.names[of]])?;
        let lines = [format!("master_port:{primary}"), "master_link_status:up".to_owned()];
        until("the replica follows", || {
            let info = node.command(&["INFO", "replication"]).unwrap_or_default();
            lines.iter().all(|line| info.lines().any(|has| has.trim() == line))
        })
    }

    /// A replica takes the place of its primary, which becomes a replica of it.
    ///
    /// # Errors
    /// The node refuses, or it does not happen in time.
    pub fn fail_over(&self, replica: usize) -> anyhow::Result<()> {
        let node = &self.nodes[replica];
        // Without a vote, which may come to nothing in a Cluster this small.
        node.command(&["CLUSTER", "FAILOVER", "TAKEOVER"])?;
        until("the replica is the primary", || {
            node.command(&["INFO", "replication"]).is_ok_and(|info| info.contains("role:master"))
        })
    }

    /// A node.
    #[must_use]
    pub fn node(&self, index: usize) -> &PrivateRedis {
        &self.nodes[index]
    }

    /// A node, to break.
    pub fn node_mut(&mut self, index: usize) -> &mut PrivateRedis {
        &mut self.nodes[index]
    }

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> &[PrivateRedis] {
        &self.nodes
    }

    /// Which node owns a slot, as the first node that answers sees it.
    ///
    /// # Errors
    /// None answers, or nobody owns it.
    pub fn owner(&self, slot: u16) -> anyhow::Result<usize> {
        let shape = self.nodes.iter().find_map(|node| node.command(&["CLUSTER", "NODES"]).ok());
        let shape = shape.context("no node answers")?;
        let owns = |fields: &str| {
            fields.split(' ').any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
                bounds.is_some_and(|(first, last)| (first..=last).contains(&slot))
            })
        };
        let name = shape.lines().find_map(|line| {
            let mut fields = line.splitn(9, ' ');
            let name = fields.next()?;
            fields.nth(7).is_some_and(owns).then_some(name)
        });
        let name = name.with_context(|| format!("nobody owns slot {slot}"))?;
        self.names.iter().position(|known| known == name).context("an unknown node owns it")
    }

    /// Moves a slot with its keys to another node, as rebalancing does: importing, migrating, keys, node.
    ///
    /// # Errors
    /// A node refuses a step.
    pub fn move_slot(&self, slot: u16, to: usize) -> anyhow::Result<()> {
        let from = self.owner(slot)?;
        let number = slot.to_string();
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        target.command(&["CLUSTER", "SETSLOT", &number, "IMPORTING", &self.names[from]])?;
        source.command(&["CLUSTER", "SETSLOT", &number, "MIGRATING", &self.names[to]])?;
        let port = target.port().to_string();
        loop {
            let keys =
                source.command(&["CLUSTER", "GETKEYSINSLOT", &number, &MIGRATE_AT_ONCE.to_string()])?;
            let keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() {
                break;
            }
            let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            migrate.extend(keys);
            source.command(&migrate)?;
        }
        for node in [target, source] {
            node.command(&["CLUSTER", "SETSLOT", &number, "NODE", &self.names[to]])?;
        }
        let others = self.nodes.iter().enumerate().filter(|(index, _)| ![from, to].contains(index));
        for (_, node) in others {
            // One that is down hears of it from the others.
            let _ = node.command(&["CLUSTER", "SETSLOT", &number, "NODE", &self.names[to]]);
        }
        Ok(())
    }

    fn is_whole(&self, node: &PrivateRedis) -> bool {
        let info = node.command(&["CLUSTER", "INFO"]).unwrap_or_default();
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        let assigned = format!("cluster_slots_assigned:{SLOTS}");
        ["cluster_state:ok", &known, &assigned].iter().all(|line| info.lines().any(|has| has.trim() == *line))
    }
}

/// A node of no Cluster yet, and the port of its bus.
fn node(kind: RedisKind) -> anyhow::Result<(PrivateRedis, PortLease)> {
    let bus = PortLease::take()?;
    let port = bus.number().to_string();
    let options = [
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &port,
        "--cluster-node-timeout",
        NODE_LIMIT_MS,
        "--repl-diskless-sync-delay",
        "0",
        "--cluster-require-full-coverage",
        "no",
    ];
    Ok((PrivateRedis::start(kind, &options)?, bus))
}
