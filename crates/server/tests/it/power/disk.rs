//! A disk that lost its power.

use std::collections::BTreeMap;
use std::path::Path;

use super::trace::Deed;

/// What a disk writes at once, or not.
const SECTOR: usize = 512;

/// SplitMix64: a seed gives the same cuts on every machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + usize::try_from(self.roll() % u64::try_from(high - low + 1).unwrap()).unwrap()
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }
}

/// Something that happened to a file and is not synced yet.
#[derive(Clone)]
enum Loose<'d> {
    Wrote { at: usize, bytes: &'d [u8] },
    Cut(usize),
}

#[derive(Default, Clone)]
struct File<'d> {
    /// What is surely on the disk.
    kept: Vec<u8>,
    loose: Vec<Loose<'d>>,
}

impl File<'_> {
    fn settle(&mut self) {
        for loose in std::mem::take(&mut self.loose) {
            apply(&mut self.kept, &loose);
        }
    }

    /// The file after a cut: of what is loose, `percent` of the sectors are there.
    fn after(&self, percent: u64, dice: &mut Dice) -> Vec<u8> {
        let mut found = self.kept.clone();
        for loose in &self.loose {
            match loose {
                Loose::Cut(_) if dice.chance(percent) => apply(&mut found, loose),
                Loose::Cut(_) => {}
                Loose::Wrote { at, bytes } => {
                    let (mut from, end) = (*at, at + bytes.len());
                    while from < end {
                        let to = end.min((from / SECTOR + 1) * SECTOR);
                        if dice.chance(percent) {
                            apply(&mut found, &Loose::Wrote { at: from, bytes: &bytes[from - at..to - at] });
                        } else if from >= self.kept.len() && to <= found.len() && dice.chance(50) {
                            // Room that was given to the file and never written holds anything.
                            let garbage = u8::try_from(dice.between(0, 255)).unwrap();
                            found[from..to].fill(garbage);
                        }
                        from = to;
                    }
                }
            }
        }
        found
    }
}

fn apply(file: &mut Vec<u8>, loose: &Loose<'_>) {
    match loose {
        Loose::Wrote { at, bytes } => {
            if file.len() < at + bytes.len() {
                file.resize(at + bytes.len(), 0);
            }
            file[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        Loose::Cut(size) => file.resize(*size, 0),
    }
}

/// The files that are found when the power is back.
pub(super) struct Disk(BTreeMap<String, Vec<u8>>);

impl Disk {
    /// The power fails when these deeds are done.
    pub(super) fn at(deeds: &[Deed], dice: &mut Dice) -> Self {
        let mut files: BTreeMap<&str, File<'_>> = BTreeMap::new();
        // Files whose name the folder may not know yet, or still know.
        let (mut unnamed, mut removed) = (Vec::<&str>::new(), BTreeMap::<&str, File<'_>>::new());
        for deed in deeds {
            match deed {
                Deed::Created(name) => {
                    if !files.contains_key(name.as_str()) {
                        unnamed.push(name);
                        files.insert(name, File::default());
                    }
                }
                Deed::Wrote { file, at, bytes } => {
                    files.entry(file).or_default().loose.push(Loose::Wrote { at: *at, bytes });
                }
                Deed::Cut { file, size } => files.entry(file).or_default().loose.push(Loose::Cut(*size)),
                Deed::Removed(name) => {
                    removed.extend(files.remove_entry(name.as_str()));
                }
                Deed::Synced(name) if name.is_empty() => {
                    unnamed.clear();
                    removed.clear();
                }
                Deed::Synced(name) => {
                    if let Some(file) = files.get_mut(name.as_str()) {
                        file.settle();
                    }
                }
                Deed::Sent(_) => {}
            }
        }
        let percent = [0, 30, 70, 100][dice.between(0, 3)];
        let mut found = BTreeMap::new();
        for (name, file) in removed {
            if dice.chance(50) {
                found.insert(name.to_owned(), file.after(percent, dice));
            }
        }
        for (name, file) in files {
            if !unnamed.contains(&name) || dice.chance(50) {
                found.insert(name.to_owned(), file.after(percent, dice));
            }
        }
        Self(found)
    }

    pub(super) fn write(&self, folder: &Path) {
        for (name, bytes) in &self.0 {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
}
