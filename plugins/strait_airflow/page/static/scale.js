// Where the lines of a chart's axes are: at numbers that people count in. Pure.

const DAY = 86_400;
const TIMES = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, DAY, 2 * DAY, 5 * DAY];
const MOST = 4;

const rounded = (value) => Number(value.toPrecision(12));

function decimal(most) {
  const power = 10 ** Math.floor(Math.log10(most / MOST));
  return [1, 2, 5, 10].map((each) => each * power).find((step) => most / step <= MOST);
}

const ofTime = (most) => TIMES.find((step) => most / step <= MOST) ?? Math.ceil(most / MOST / DAY) * DAY;

// From 0 to the first step at or above `most`; `isTime`: in steps of a clock.
export function ticks(most, isTime = false) {
  if (!(most > 0)) return [0, 1];
  const step = isTime && most > MOST ? ofTime(most) : decimal(most);
  return Array.from({ length: Math.ceil(rounded(most / step)) + 1 }, (_, at) => rounded(at * step));
}

const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14_400].map((minutes) => minutes * 60_000);

// Times between two, at most so many, on full hours or days of UTC.
export function times(from, to, most) {
  const step = CLOCK.find((each) => (to - from) / each <= most) ?? Math.ceil((to - from) / most / (DAY * 1000)) * DAY * 1000;
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, at) => first + at * step);
}
