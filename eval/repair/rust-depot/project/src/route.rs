//! Ways through the warehouse: a grid of shelves.

use std::collections::{HashSet, VecDeque};

pub type Cell = (i32, i32);

pub fn distance(a: Cell, b: Cell) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// Steps of the shortest way around obstacles, if there is one.
pub fn steps(width: i32, height: i32, blocked: &HashSet<Cell>, from: Cell, to: Cell) -> Option<usize> {
    let mut seen = HashSet::from([from]);
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((cell, taken)) = queue.pop_front() {
        if cell == to {
            return Some(taken);
        }
        for (dx, dy) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
            let next = (cell.0 + dx, cell.1 + dy);
            let inside = next.0 >= 0 && next.0 < width && next.1 >= 0 && next.1 < height;
            if inside && !blocked.contains(&next) && seen.insert(next) {
                queue.push_back((next, taken + 1));
            }
        }
    }
    None
}

/// Visits the nearest stop next, again and again.
pub fn tour(start: Cell, stops: &[Cell]) -> (Vec<Cell>, i32) {
    let mut left: Vec<Cell> = stops.to_vec();
    let mut at = start;
    let mut way = Vec::new();
    let mut length = 0;
    while !left.is_empty() {
        let (index, near) = left
            .iter()
            .map(|stop| distance(at, *stop))
            .enumerate()
            .min_by_key(|(_, far)| *far)
            .unwrap();
        length += near;
        at = left.remove(index);
        way.push(at);
    }
    (way, length)
}

/// Splits weights into loads that a cart can carry, in order.
pub fn loads(weights: &[u32], limit: u32) -> Vec<Vec<u32>> {
    let mut out = Vec::new();
    let mut load: Vec<u32> = Vec::new();
    let mut sum = 0;
    for &weight in weights {
        if sum + weight > limit && !load.is_empty() {
            out.push(std::mem::take(&mut load));
            sum = 0;
        }
        load.push(weight);
        sum += weight;
    }
    if !load.is_empty() {
        out.push(load);
    }
    out
}
