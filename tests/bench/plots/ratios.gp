# How many times as fast as CUB, a panel for each type.
set terminal pngcairo size 1200,760 enhanced font "DejaVu Sans,13" background "#ffffff" linewidth 1.2
stats work . "/ratios" using 1 name "n" nooutput
stats work . "/ratios" using 2 name "ratio" nooutput

set multiplot layout 2,4 columnsfirst title "CUB’s time / gpukit’s on one " . device . ", cold caches: higher is better" \
  font ",19" textcolor rgb text margins 0.05,0.975,0.09,0.86 spacing 0.045,0.11
set logscale x 2
set logscale y 2
set xrange [n_min : n_max * 1.15]
set yrange [(ratio_min < 0.5 ? ratio_min : 0.5) : (ratio_max > 4 ? ratio_max * 1.1 : 4.4)]
set xtics ("2^{10}" 2**10, "2^{15}" 2**15, "2^{20}" 2**20, "2^{25}" 2**25, "2^{30}" 2**30)
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linewidth 1.4 linecolor rgb grey back

types = "f32 f64 f16 bf16 i8 u8 i32 i64"
do for [i = 1 : 8] {
  type = word(types, i)
  set title type font ",15" offset 0,-0.6
  if (i <= 2) { set ytics ("½" 0.5, "1" 1, "2" 2, "4" 4, "8" 8) } else { set ytics ("" 0.5, "" 1, "" 2, "" 4, "" 8) }
  set for [k = 1 : 3] label k ""
  set xlabel i % 2 ? "" : "n, elements"
  if (i == 1) {
    set label 1 "reduce" at graph 0.62, graph 0.93 textcolor rgb ours
    set label 2 "scan" at graph 0.62, graph 0.84 textcolor rgb peer
    set label 3 "gpukit is faster ↑" at graph 0.04, first 1.09 textcolor rgb grey font ",11"
  }
  reduce = work . "/reduce." . type
  scan = work . "/scan." . type
  has(file) = int(system("test -s " . file . " && echo 1 || echo 0"))
  if (has(reduce) && has(scan)) {
    plot scan using 1:2 with linespoints linewidth 2 pointtype 5 pointsize 0.8 linecolor rgb peer, \
         reduce using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.9 linecolor rgb ours
  } else {
    plot (has(reduce) ? reduce : scan) using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.9 \
         linecolor rgb (has(reduce) ? ours : peer)
  }
}
unset multiplot
