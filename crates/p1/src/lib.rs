//! X.411 abstract services: O/R addresses, envelopes, trace, reports, bind; P1 and P3.
