//! What of a client's session follows it to the server that it is given.

use super::Engine;
use crate::connection::{ClientId, ServerId};
use crate::seam::Transport;
use pgwire::message::{backend, frontend};
use std::sync::Arc;

const CLIENT_ENCODING: &str = "client_encoding";
const IN_UTF8: &str = "SET client_encoding='UTF8';";

impl Engine {
    /// The queries that give a server its new client's parameters, noted as owed. None if it has them; then the client is
    /// told what this server reports otherwise than its last one and nobody can set.
    pub(super) fn change_parameters(
        &mut self,
        transport: &mut impl Transport,
        id: ClientId,
        server_id: ServerId,
    ) -> Option<Vec<u8>> {
        let (client, server) = (self.clients.find_mut(id)?, self.servers.find_mut(server_id)?);
        if Arc::ptr_eq(&server.parameters, &client.parameters) {
            return None;
        }
        let Some(mut change) =
            self.parameters.difference(&server.parameters, &server.start, &client.parameters)
        else {
            let mut told = Vec::new();
            self.parameters.agree(&mut server.parameters, &mut client.parameters, |name, value| {
                backend::parameter_status(&mut told, name, value);
            });
            if !told.is_empty() {
                self.send_to_client(transport, id, &told, None);
            }
            return None;
        };
        let pool = &self.pools[server.pool.0 as usize];
        // What is reset goes back to what the server itself began with: `connect_query` has to run again.
        let connect_query = pool
            .target
            .connect_query
            .as_deref()
            .filter(|sql| !change.resets.is_empty() && !sql.trim().is_empty());
        let mut queries = Vec::with_capacity(change.resets.len() + change.sets.len() + 6);
        server.own_error = None;
        server.settings_owed = 0;
        // A text is read in the encoding that holds when it comes: what is not ASCII is sent in ours, and the client's own
        // comes last.
        let first = (!change.sets.is_ascii()).then_some(IN_UTF8);
        if first.is_some()
            && let Some(encoding) = self.parameters.value_of(&client.parameters, CLIENT_ENCODING)
        {
            change.set(CLIENT_ENCODING, &encoding);
        }
        let all = format!("{}{}", change.resets, change.sets);
        let parts = match connect_query {
            None => [first, Some(all.as_str()), None, None],
            Some(sql) => [
                first,
                Some(change.resets.as_str()),
                Some(sql),
                Some(change.sets.as_str()).filter(|sets| !sets.is_empty()),
            ],
        };
        for part in parts.into_iter().flatten() {
            frontend::query(&mut queries, part);
            // A server at rest owes nothing, so there is room.
            server.note_own_query();
            server.settings_owed += 1;
        }
        Some(queries)
    }
}
