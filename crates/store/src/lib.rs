//! The network's tables: schema, migrations, queries, and the services' own pool.
