//! `holdfast up`: a whole network on one machine.
