//! Documents that agents can search, in pieces.
