//! Accounts, sign-in, clients, grants, contracts: the network's HTTP interface.
