#!/usr/bin/perl
use strict; # sub no {

package Shop;

sub new {
    my ($class, %args) = @_;
    my $count = $#{$args{list}};
    $args{name} =~ s/[{'"]//g;
    return bless { %args }, $class;
}

=pod

sub documented {

=cut

# Adds.
sub add
{
    my $text = <<EOT;
sub text {
}
EOT
    return $text;
}

sub one { 1 }

sub declared;

package Inner {
    sub deep {
        if (1) {
            return '}';
        }
    }
}

1;
