// Continuous batching in plain JavaScript, twice. Times are seconds.
//
// - article: as an article writes it. A loop over the slots finds the one that falls free first, and
//   every request gives a record.
// - scan: the same for speed, with typed arrays in place of records.
//
//   node article_loop.mjs ARRIVALS SERVICE SLOTS REPEATS
//
// ARRIVALS and SERVICE are files of little-endian float64. Prints JSON: for each way the fastest
// repeat in seconds, and two figures by which to see that the other program did the same work.

import { readFileSync } from "node:fs";

const [arrivalsFile, serviceFile, slotsText, repeatsText] = process.argv.slice(2);
const slots = Number(slotsText);

function read(file) {
  const bytes = readFileSync(file);
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

const arrivals = read(arrivalsFile);
const services = read(serviceFile);
const requests = Array.from(arrivals, (arrival, i) => ({ arrival, service: services[i] }));

function article() {
  const free = new Array(slots).fill(0);
  const served = [];
  for (const { arrival, service } of requests) {
    let slot = 0;
    for (let other = 1; other < slots; other++) {
      if (free[other] < free[slot]) slot = other;
    }
    const start = Math.max(arrival, free[slot]);
    const end = start + service;
    free[slot] = end;
    served.push({ arrival, start, end });
  }
  return served;
}

function scan() {
  const free = new Float64Array(slots);
  const starts = new Float64Array(arrivals.length);
  const ends = new Float64Array(arrivals.length);
  for (let i = 0; i < arrivals.length; i++) {
    let slot = 0;
    for (let other = 1; other < slots; other++) {
      if (free[other] < free[slot]) slot = other;
    }
    starts[i] = Math.max(arrivals[i], free[slot]);
    ends[i] = starts[i] + services[i];
    free[slot] = ends[i];
  }
  return { starts, ends };
}

function timed(serve) {
  let best = Infinity;
  let served;
  for (let repeat = 0; repeat < Number(repeatsText); repeat++) {
    const began = performance.now();
    served = serve();
    best = Math.min(best, performance.now() - began);
  }
  return { seconds: best / 1000, served };
}

function summary(seconds, starts, ends) {
  let makespan = 0;
  let waited = 0;
  for (let i = 0; i < starts.length; i++) {
    makespan = Math.max(makespan, ends[i]);
    waited += starts[i] - arrivals[i];
  }
  return { seconds, makespan, waited };
}

const short = timed(article);
const fast = timed(scan);
console.log(
  JSON.stringify({
    article: summary(
      short.seconds,
      short.served.map((record) => record.start),
      short.served.map((record) => record.end),
    ),
    scan: summary(fast.seconds, fast.served.starts, fast.served.ends),
  }),
);
