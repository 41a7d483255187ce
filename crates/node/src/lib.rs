//! A whole MTA as one pure machine: engine, scheduler, associations and channel policy.
