# TFLOP/s by shape, gpukit beside cuBLAS: a panel for each way of computing that has rows.
set terminal pngcairo size 1240,1480 enhanced font "DejaVu Sans,13" background "#ffffff" linewidth 1.2
has(file) = int(system("test -s " . file . " && echo 1 || echo 0"))
types = "f32 bf16 f32emulated f64"
titles = "'float, strict' 'bfloat16' 'float, emulated (beside strict cuBLAS)' 'double'"

set multiplot layout 2,2 title "Matmul on one " . device font ",19" textcolor rgb text \
  margins 0.175,0.985,0.05,0.93 spacing 0.19,0.085
set style fill solid 1 noborder
set border 1
set grid noytics xtics
set ytics scale 0
set xlabel "TFLOP/s"
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
    set title word(titles, i) font ",15" offset 0,-0.4
    set yrange [rows - 0.4 : -0.8]
    set xrange [0 : most * 1.16]
    set label 1 "gpukit" at graph 0.99, graph 0.975 right textcolor rgb ours
    set label 2 "cuBLAS" at graph 0.99, graph 0.94 right textcolor rgb peer
    plot file using (0):($0):(0):2:($0 - 0.38):($0 - 0.02):ytic(1) with boxxyerror linecolor rgb ours, \
         file using (0):($0):(0):3:($0 + 0.02):($0 + 0.38) with boxxyerror linecolor rgb peer, \
         file using 2:($0 - 0.2):(sprintf(" %.1f", $2)) with labels left font ",10" textcolor rgb text, \
         file using 3:($0 + 0.2):(sprintf(" %.1f", $3)) with labels left font ",10" textcolor rgb text
  }
}
unset multiplot
