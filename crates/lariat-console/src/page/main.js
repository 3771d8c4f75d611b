// The page follows.
