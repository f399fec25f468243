# TFLOP/s by shape, gpukit beside cuBLAS: a panel for each kind of arithmetic that has rows. The figures stand in columns
# at the right of the bars, which are too thin for figures of their own.
set terminal pngcairo size 1240,1960 enhanced font "DejaVu Sans,13" background "#ffffff" linewidth 1.2
has(file) = int(system("test -s " . file . " && echo 1 || echo 0"))
types = "f32 f32emulated bf16 f16 tf32 f64"
titles = "'float, strict' 'float, emulated (beside strict cuBLAS)' 'bfloat16' 'float16' 'tf32' 'double'"

set multiplot layout 3,2 title "Matmul on one " . device . ": TFLOP/s by m × n × k, higher is better" font ",19" \
  textcolor rgb text margins 0.155,0.985,0.04,0.93 spacing 0.175,0.065
set style fill solid 1 noborder
set border 1
set grid noytics xtics
set ytics scale 0 font ",11"
set xlabel "TFLOP/s, higher is better"
set boxwidth 0.36

# The first shape on top. Bars lie: x from 0 to the value, y around the row.
do for [i = 1:words(types)] {
  file = work . "/matmul." . word(types, i)
  if (has(file)) {
    set xrange [*:*]
    set yrange [*:*]
    stats file using 2 name "us" nooutput
    stats file using 3 name "they" nooutput
    rows = int(us_records)
    most = us_max > they_max ? us_max : they_max
    set title word(titles, i) font ",15" offset 0,0.3
    set yrange [rows - 0.4 : -1.5]
    set xrange [0 : most * 1.78]
    step = most > 400 ? 200 : most > 200 ? 100 : most > 100 ? 40 : 20
    set xtics 0, step, most
    place(k) = most * (1.02 + 0.24 * k)
    set label 1 "gpukit" at place(0.85), -1 right textcolor rgb ours font ",11"
    set label 2 "cuBLAS" at place(2), -1 right textcolor rgb peer font ",11"
    set label 3 "ratio" at place(3), -1 right textcolor rgb text font ",11"
    plot file using (0):($0):(0):2:($0 - 0.38):($0 - 0.02):ytic(1) with boxxyerror linecolor rgb ours, \
         file using (0):($0):(0):3:($0 + 0.02):($0 + 0.38) with boxxyerror linecolor rgb peer, \
         file using (place(0.85)):0:(sprintf("%.1f", $2)) with labels right font ",11" textcolor rgb ours, \
         file using (place(2)):0:(sprintf("%.1f", $3)) with labels right font ",11" textcolor rgb peer, \
         file using (place(3)):0:(sprintf("%.2f", $2 / $3)) with labels right font ",11" textcolor rgb text
  }
}
unset multiplot
