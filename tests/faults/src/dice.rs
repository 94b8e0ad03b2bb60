//! Random numbers that a seed repeats on every machine.

/// SplitMix64: small, and good enough to choose faults.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n - 1`. Nothing to choose from is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % n).unwrap_or(0)
    }

    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.roll() % (high - low + 1)
    }

    /// True in `percent` of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }

    /// Dice of their own for one more player.
    pub fn fork(&mut self) -> Self {
        Self(self.roll())
    }
}
